"""POST /v1/chat/completions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.responses import Response

from llmc.server.errors import ApiError
from llmc.server.generation import ANSWERS, Generation, encode
from llmc.server.logprobs import chat_logprobs
from llmc.server.models import ServedModel
from llmc.server.protocol import (
    AnswerMessage,
    ChatChoice,
    ChatChunk,
    ChatChunkChoice,
    ChatCompletion,
    ChatDelta,
    ChatLogprobs,
    ChatRequest,
    Message,
    TextPart,
)
from llmc.server.sampling import room, sampling_params
from llmc.server.state import state_of
from llmc.server.streaming import EventStream, as_json, event, unless_disconnected

router = APIRouter()


@router.post("/v1/chat/completions", responses={200: {"model": ChatCompletion}, **ANSWERS}, response_model=None)
async def create_chat_completion(body: ChatRequest, request: Request) -> Response:
    """Answers a conversation, rendered with the model's chat template."""
    state = state_of(request)
    model = state.models.get(body.model)
    if body.top_logprobs is not None and not body.logprobs:
        raise ApiError(400, "top_logprobs needs logprobs=true", param="top_logprobs")
    ids = await encode_chat(model, body.messages, body.add_generation_prompt, body.chat_template_kwargs)
    asked = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
    length = room(model, len(ids), asked, state.config.default_max_tokens)
    params = sampling_params(body, model, length, 0 if body.logprobs else None)
    work = _Work(body, Generation(state, model, [ids], [params], body))
    log = request.state.log
    if body.stream:
        return EventStream(work.events(log))
    answer = await unless_disconnected(request, work.answer())
    work.generation.note(log)
    return JSONResponse(as_json(answer))


async def encode_chat(
    model: ServedModel, messages: Sequence[Message], add_generation_prompt: bool, variables: dict[str, Any]
) -> list[int]:
    """The conversation's token ids; the template writes its special tokens itself."""
    plain = [_plain(message) for message in messages]
    text = await asyncio.to_thread(
        model.tokenizer.apply_chat_template, plain, add_generation_prompt=add_generation_prompt, **variables
    )
    return await encode(model, text, add_special_tokens=False)


def _plain(message: Message) -> dict[str, Any]:
    """A message as templates read it: text content in one piece, 'developer' under the name they know."""
    fields = message.model_dump(exclude_unset=True)
    if isinstance(message.content, list):
        fields["content"] = "\n".join(part.text for part in message.content if isinstance(part, TextPart))
    if message.role == "developer":
        fields["role"] = "system"
    return fields


@dataclass
class _Work:
    body: ChatRequest
    generation: Generation
    head: ChatCompletion = field(init=False)

    def __post_init__(self) -> None:
        self.head = ChatCompletion(model=self.generation.model.name)

    async def answer(self) -> ChatCompletion:
        tokenizer = self.generation.model.tokenizer
        choices = [ChatChoice(index=i, message=AnswerMessage(content="")) for i in range(self.generation.n)]
        async with contextlib.aclosing(self.generation.stream()) as all_news:
            async for index, news in all_news:
                choice = choices[index]
                choice.message.content = (choice.message.content or "") + news.text
                choice.finish_reason, choice.stop_reason = news.finish_reason, news.stop_reason  # type: ignore[assignment]
                found = chat_logprobs(tokenizer, news.token_ids, news.logprobs)
                if found is not None:
                    choice.logprobs = choice.logprobs or ChatLogprobs()
                    choice.logprobs.content += found
        return self.head.model_copy(update={"choices": choices, "usage": self.generation.usage()})

    async def events(self, log: dict[str, object]) -> AsyncGenerator[bytes, None]:
        tokenizer = self.generation.model.tokenizer
        options = self.body.stream_options
        running = bool(options and options.continuous_usage_stats)
        introduced = [False] * self.generation.n
        chunk = ChatChunk(id=self.head.id, created=self.head.created, model=self.head.model)

        def made(choices: list[ChatChunkChoice], usage: bool = running) -> bytes:
            found = self.generation.usage() if usage else None
            return event(chunk.model_copy(update={"choices": choices, "usage": found}))

        try:
            async with contextlib.aclosing(self.generation.stream()) as all_news:
                async for index, news in all_news:
                    if not introduced[index]:
                        introduced[index] = True
                        delta = ChatDelta(role="assistant", content="")
                        yield made([ChatChunkChoice(index=index, delta=delta)])
                    if news.text or news.logprobs:
                        found = chat_logprobs(tokenizer, news.token_ids, news.logprobs)
                        logprobs = None if found is None else ChatLogprobs(content=found)
                        delta = ChatDelta(content=news.text)
                        yield made([ChatChunkChoice(index=index, delta=delta, logprobs=logprobs)])
                    if news.finish_reason is not None:
                        last = ChatChunkChoice(
                            index=index,
                            delta=ChatDelta(),
                            finish_reason=news.finish_reason,  # type: ignore[arg-type]
                            stop_reason=news.stop_reason,
                        )
                        yield made([last])
            if options and options.include_usage:
                yield made([], usage=True)
        finally:
            self.generation.note(log)
