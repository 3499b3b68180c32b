"""One chat completion: the engine's news as messages, whole or streamed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from functools import partial

from llmc.runtime.outputs import CompletionDelta
from llmc.server.generation import Generation
from llmc.server.logprobs import chat_logprobs
from llmc.server.parsers import OutputParser, Part
from llmc.server.protocol import (
    AnsweredCall,
    AnswerMessage,
    CalledFunction,
    ChatChoice,
    ChatChunk,
    ChatChunkChoice,
    ChatCompletion,
    ChatDelta,
    ChatLogprobs,
    ChatRequest,
    Finish,
)
from llmc.server.streaming import event, text_events


@dataclass
class ChatAnswer:
    body: ChatRequest
    generation: Generation
    parsers: Sequence[OutputParser]  #: one for each choice
    head: ChatCompletion = field(init=False)

    def __post_init__(self) -> None:
        self.head = ChatCompletion(model=self.generation.model.name)

    async def whole(self) -> ChatCompletion:
        choices = [ChatChoice(index=i, message=AnswerMessage()) for i in range(self.generation.n)]
        async with contextlib.aclosing(self.generation.stream()) as all_news:
            async for index, news in all_news:
                choice = choices[index]
                for part in self._parts(index, news):
                    _add(choice.message, part)
                choice.finish_reason, choice.stop_reason = self._finish(index, news), news.stop_reason
                if (found := self._logprobs(news)) is not None:
                    choice.logprobs = choice.logprobs or ChatLogprobs()
                    choice.logprobs.content += found.content
        for choice in choices:
            if choice.message.content is None and not choice.message.tool_calls:
                choice.message.content = ""
        return self.head.model_copy(update={"choices": choices, "usage": self.generation.usage()})

    async def events(self, log: dict[str, object]) -> AsyncGenerator[bytes, None]:
        options = self.body.stream_options
        running = bool(options and options.continuous_usage_stats)
        introduced = [False] * self.generation.n
        chunk = ChatChunk(id=self.head.id, created=self.head.created, model=self.head.model)

        def content(index: int, text: str) -> ChatChunk:
            return chunk.model_copy(update={"choices": [ChatChunkChoice(index=index, delta=ChatDelta(content=text))]})

        only_text = [text_events(partial(content, index)) for index in range(self.generation.n)]

        def made(choices: list[ChatChunkChoice], usage: bool = running) -> bytes:
            found = self.generation.usage() if usage else None
            return event(chunk.model_copy(update={"choices": choices, "usage": found}))

        try:
            async with contextlib.aclosing(self.generation.stream()) as all_news:
                async for index, news in all_news:
                    if not introduced[index]:
                        introduced[index] = True
                        yield made([ChatChunkChoice(index=index, delta=ChatDelta(role="assistant", content=""))])
                    logprobs = self._logprobs(news)
                    calls = self.parsers[index].num_calls
                    for part in self._parts(index, news):
                        if part.kind == "content" and logprobs is None and not running:
                            yield only_text[index](part.text)
                            continue
                        delta = _delta(part, calls)
                        calls += part.call is not None
                        yield made([ChatChunkChoice(index=index, delta=delta, logprobs=logprobs)])
                        logprobs = None
                    if logprobs is not None:
                        yield made([ChatChunkChoice(index=index, delta=ChatDelta(content=""), logprobs=logprobs)])
                    if (finish := self._finish(index, news)) is not None:
                        last = ChatChunkChoice(index=index, delta=ChatDelta(), finish_reason=finish)
                        last.stop_reason = news.stop_reason
                        yield made([last])
            if options and options.include_usage:
                yield made([], usage=True)
        finally:
            self.generation.note(log)

    def _parts(self, index: int, news: CompletionDelta) -> list[Part]:
        parser = self.parsers[index]
        parts = parser.push(news.text) if news.text else []
        return parts + parser.finish() if news.finish_reason is not None else parts

    def _finish(self, index: int, news: CompletionDelta) -> Finish | None:
        if news.finish_reason == "stop" and self.parsers[index].num_calls:
            return "tool_calls"
        return news.finish_reason  # type: ignore[return-value]

    def _logprobs(self, news: CompletionDelta) -> ChatLogprobs | None:
        if not news.logprobs:
            return None
        tokenizer = self.generation.model.tokenizer
        return ChatLogprobs(content=chat_logprobs(tokenizer, news))


def _add(message: AnswerMessage, part: Part) -> None:
    if part.call is not None:
        message.tool_calls = [*(message.tool_calls or []), _answered(part)]
    elif part.kind == "reasoning":
        message.reasoning_content = (message.reasoning_content or "") + part.text
    else:
        message.content = (message.content or "") + part.text


def _delta(part: Part, calls: int) -> ChatDelta:
    if part.call is not None:
        return ChatDelta(tool_calls=[_answered(part, calls)])
    return ChatDelta(reasoning_content=part.text) if part.kind == "reasoning" else ChatDelta(content=part.text)


def _answered(part: Part, index: int | None = None) -> AnsweredCall:
    assert part.call is not None
    return AnsweredCall(index=index, function=CalledFunction(name=part.call.name, arguments=part.call.arguments))
