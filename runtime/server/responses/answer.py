"""One response: the engine's news as items, whole or as events."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from llmc.runtime.outputs import CompletionDelta
from llmc.server.errors import as_api_error
from llmc.server.generation import Generation
from llmc.server.logprobs import chat_logprobs
from llmc.server.parsers import OutputParser, Part
from llmc.server.protocol import TokenLogprob
from llmc.server.responses.items import (
    IncompleteDetails,
    InputTokens,
    OutputCall,
    OutputMessage,
    OutputReasoning,
    OutputReasoningText,
    OutputText,
    OutputTokens,
    ResponseError,
    ResponseObject,
    ResponseUsage,
    Status,
)

#: (type, fields) of an event; `dumped` gives it its number.
Event = tuple[str, dict[str, Any]]


@dataclass
class ResponseAnswer:
    """`response` is filled in as news come; `on_end` gets it when it is complete."""

    response: ResponseObject
    generation: Generation
    parser: OutputParser
    on_end: Callable[[ResponseObject], None]
    _open: OutputMessage | OutputReasoning | None = None
    _logprobs: list[TokenLogprob] = field(default_factory=list)  # of tokens whose text is still held back
    _reasoning_tokens: int = 0

    async def whole(self) -> ResponseObject:
        async with contextlib.aclosing(self.generation.stream()) as all_news:
            async for _, news in all_news:
                for _ in self._take(news):
                    pass
        return self.response

    async def events(self, log: dict[str, object]) -> AsyncGenerator[bytes, None]:
        number = 0

        def dumped(event: Event) -> bytes:
            nonlocal number
            kind, fields = event
            text = json.dumps({"type": kind, "sequence_number": number, **fields}, ensure_ascii=False)
            number += 1
            return f"event: {kind}\ndata: {text}\n\n".encode()

        begun = False
        try:
            async with contextlib.aclosing(self.generation.stream()) as all_news:
                async for _, news in all_news:
                    if not begun:  # not before: what is refused is refused with its status
                        begun = True
                        for kind in ("created", "in_progress"):
                            yield dumped((f"response.{kind}", {"response": dump(self.response)}))
                    for event in self._take(news):
                        yield dumped(event)
        except Exception as error:
            if not begun:
                raise
            found = as_api_error(error)
            self.response.status = "failed"
            self.response.error = ResponseError(code=found.code or "server_error", message=found.message)
            yield dumped(("error", {"code": found.code, "message": found.message, "param": found.param}))
            yield dumped(("response.failed", {"response": dump(self.response)}))
        finally:
            self.generation.note(log)

    def _take(self, news: CompletionDelta) -> Iterator[Event]:
        if news.logprobs:
            self._logprobs += chat_logprobs(self.generation.model.tokenizer, news)
        parts = self.parser.push(news.text) if news.text else []
        if news.finish_reason is not None:
            parts += self.parser.finish()
        if not any(isinstance(item, (OutputMessage, OutputCall)) for item in self.response.output):
            self._reasoning_tokens += len(news.token_ids) if all(part.kind == "reasoning" for part in parts) else 0
        for part in parts:
            yield from self._part(part)
        if news.finish_reason is not None:
            yield from self._end(news.finish_reason)

    def _part(self, part: Part) -> Iterator[Event]:
        if part.call is not None:
            yield from self._close("completed")
            yield from self._call(part.call.name, part.call.arguments)
            return
        if part.kind == "reasoning":
            if not isinstance(self._open, OutputReasoning):
                yield from self._close("completed")
                yield from self._begin(OutputReasoning(), OutputReasoningText())
            assert isinstance(self._open, OutputReasoning)
            self._open.content[0].text += part.text
            yield self._at("response.reasoning_text.delta", content_index=0, delta=part.text)
            self._logprobs.clear()  # only content has log probabilities
            return
        yield from self._content(part.text)

    def _content(self, text: str) -> Iterator[Event]:
        if not isinstance(self._open, OutputMessage):
            yield from self._close("completed")
            yield from self._begin(OutputMessage(), OutputText())
        assert isinstance(self._open, OutputMessage)
        logprobs, self._logprobs = self._logprobs, []
        self._open.content[0].text += text
        self._open.content[0].logprobs += logprobs
        found = [one.model_dump() for one in logprobs]
        yield self._at("response.output_text.delta", content_index=0, delta=text, logprobs=found)

    def _begin(self, item: OutputMessage | OutputReasoning, part: OutputText | OutputReasoningText) -> Iterator[Event]:
        self._open = item
        self.response.output.append(item)
        yield self._at("response.output_item.added", item=item.model_dump())
        yield self._at("response.content_part.added", content_index=0, part=part.model_dump())
        item.content = [part]  # type: ignore[assignment]  # each has its own kind

    def _close(self, status: Status) -> Iterator[Event]:
        """Ends the open item."""
        item, text = self._open, ""
        if item is None:
            return
        if isinstance(item, OutputMessage):
            text = item.content[0].text
            found = [one.model_dump() for one in item.content[0].logprobs]
            yield self._at("response.output_text.done", content_index=0, text=text, logprobs=found)
        else:
            text = item.content[0].text
            yield self._at("response.reasoning_text.done", content_index=0, text=text)
        yield self._at("response.content_part.done", content_index=0, part=item.content[0].model_dump())
        item.status = status
        yield self._at("response.output_item.done", item=item.model_dump())
        self._open = None

    def _call(self, name: str, arguments: str) -> Iterator[Event]:
        item = OutputCall(name=name)
        self.response.output.append(item)
        yield self._at("response.output_item.added", item=item.model_dump())
        item.arguments, item.status = arguments, "completed"
        yield self._at("response.function_call_arguments.delta", delta=arguments)
        yield self._at("response.function_call_arguments.done", name=name, arguments=arguments)
        yield self._at("response.output_item.done", item=item.model_dump())

    def _end(self, finish: str) -> Iterator[Event]:
        complete = finish == "stop"
        if (
            self._logprobs
            and (self._open is None or isinstance(self._open, OutputMessage))
            and not self.parser.num_calls
        ):
            yield from self._content("")  # of tokens without text, such as the end of the sequence
        if not self.response.output:
            yield from self._content("")
        yield from self._close("completed" if complete else "incomplete")
        response = self.response
        response.usage = self._usage()
        response.status = "completed" if complete else "incomplete"
        if complete:
            response.completed_at = int(time.time())
        else:
            response.incomplete_details = IncompleteDetails(
                reason="timeout" if finish == "timeout" else "max_output_tokens"
            )
        self.on_end(response)
        yield f"response.{response.status}", {"response": dump(response)}

    def _at(self, kind: str, **fields: Any) -> Event:
        """An event of the newest item."""
        output = self.response.output
        place: dict[str, Any] = {"output_index": len(output) - 1}
        if "item" not in fields:
            place["item_id"] = output[-1].id
        return kind, {**place, **fields}

    def _usage(self) -> ResponseUsage:
        found = self.generation.usage()
        cached = found.prompt_tokens_details.cached_tokens if found.prompt_tokens_details else 0
        thought = any(isinstance(item, OutputReasoning) for item in self.response.output)
        return ResponseUsage(
            input_tokens=found.prompt_tokens,
            input_tokens_details=InputTokens(cached_tokens=cached),
            output_tokens=found.completion_tokens,
            output_tokens_details=OutputTokens(reasoning_tokens=self._reasoning_tokens if thought else 0),
            total_tokens=found.total_tokens,
        )


def dump(response: ResponseObject) -> dict[str, Any]:
    return response.model_dump()
