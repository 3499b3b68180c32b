"""POST /v1/completions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.responses import Response

from llmc.runtime.tokenizer import Tokenizer
from llmc.server.errors import ApiError
from llmc.server.generation import ANSWERS, Generation, encode
from llmc.server.logprobs import TextLogprobs
from llmc.server.models import ServedModel
from llmc.server.protocol import Completion, CompletionChoice, CompletionLogprobs, CompletionRequest
from llmc.server.sampling import room, sampling_params
from llmc.server.state import state_of
from llmc.server.streaming import EventStream, as_json, event, unless_disconnected

router = APIRouter()
_DEFAULT_MAX_TOKENS = 16  # OpenAI's


@router.post("/v1/completions", responses={200: {"model": Completion}, **ANSWERS}, response_model=None)
async def create_completion(body: CompletionRequest, request: Request) -> Response:
    """Continues each prompt (text or token ids)."""
    state = state_of(request)
    model = state.models.get(body.model)
    prompts = await _token_ids(body, model)
    default = state.config.default_max_tokens or _DEFAULT_MAX_TOKENS
    logprobs = None if body.logprobs is None else 0
    params = [
        sampling_params(body, model, room(model, len(ids), body.max_tokens, default), logprobs) for ids in prompts
    ]
    work = _Work(body, Generation(state, model, prompts, params, body), await _echoes(body, model, prompts))
    log = request.state.log
    if body.stream:
        return EventStream(work.events(log))
    answer = await unless_disconnected(request, work.answer())
    work.generation.note(log)
    return JSONResponse(as_json(answer))


async def _token_ids(body: CompletionRequest, model: ServedModel) -> list[list[int]]:
    prompt = body.prompt
    several = isinstance(prompt, list) and (not prompt or not isinstance(prompt[0], int))
    prompts: Sequence[object] = prompt if several else [prompt]
    if not prompts:
        raise ApiError(
            400, "prompt: expected a text, token ids or a list of these, found an empty list", param="prompt"
        )
    texts = [one for one in prompts if isinstance(one, str)]
    if not texts:
        return [list(one) for one in prompts]  # type: ignore[call-overload]
    return list(await asyncio.gather(*(encode(model, text, body.add_special_tokens) for text in texts)))


async def _echoes(body: CompletionRequest, model: ServedModel, prompts: Sequence[list[int]]) -> list[str]:
    """What each answer begins with."""
    if not body.echo:
        return [""] * len(prompts)
    if isinstance(body.prompt, str):
        return [body.prompt]
    if isinstance(body.prompt[0], str):
        return list(body.prompt)
    decode = model.tokenizer.decode
    return list(await asyncio.gather(*(asyncio.to_thread(decode, ids) for ids in prompts)))


@dataclass
class _Work:
    body: CompletionRequest
    generation: Generation
    echoes: list[str]
    head: Completion = field(init=False)

    def __post_init__(self) -> None:
        self.head = Completion(model=self.generation.model.name)

    def _logprobs(self) -> list[TextLogprobs]:
        model = self.generation.model
        tokenizer: Tokenizer | None = model.tokenizer if self.body.logprobs is not None else None
        n = self.generation.n
        return [TextLogprobs(tokenizer, len(echo)) for echo in self.echoes for _ in range(n)]

    async def answer(self) -> Completion:
        n = self.generation.n
        choices = [CompletionChoice(index=i * n + j, text=echo) for i, echo in enumerate(self.echoes) for j in range(n)]
        logprobs = self._logprobs()
        async with contextlib.aclosing(self.generation.stream()) as all_news:
            async for index, news in all_news:
                choice = choices[index]
                choice.text += news.text
                choice.finish_reason, choice.stop_reason = news.finish_reason, news.stop_reason  # type: ignore[assignment]
                found = logprobs[index].take(news.token_ids, news.logprobs)
                choice.logprobs = found if choice.logprobs is None else _joined(choice.logprobs, found)
        return self.head.model_copy(update={"choices": choices, "usage": self.generation.usage()})

    async def events(self, log: dict[str, object]) -> AsyncGenerator[bytes, None]:
        n = self.generation.n
        options = self.body.stream_options
        running = bool(options and options.continuous_usage_stats)
        echo = [echo for echo in self.echoes for _ in range(n)]
        logprobs = self._logprobs()
        try:
            async with contextlib.aclosing(self.generation.stream()) as all_news:
                async for index, news in all_news:
                    text, echo[index] = echo[index] + news.text, ""
                    if not text and news.finish_reason is None and news.logprobs is None:
                        continue  # in the middle of a character, or of what may be a stop string
                    choice = CompletionChoice(
                        index=index,
                        text=text,
                        logprobs=logprobs[index].take(news.token_ids, news.logprobs),
                        finish_reason=news.finish_reason,  # type: ignore[arg-type]
                        stop_reason=news.stop_reason,
                    )
                    usage = self.generation.usage() if running else None
                    yield event(self.head.model_copy(update={"choices": [choice], "usage": usage}))
            if options and options.include_usage:
                yield event(self.head.model_copy(update={"usage": self.generation.usage()}))
        finally:
            self.generation.note(log)


def _joined(left: CompletionLogprobs, right: CompletionLogprobs | None) -> CompletionLogprobs:
    if right is not None:
        left.tokens += right.tokens
        left.token_logprobs += right.token_logprobs
        left.text_offset += right.text_offset
    return left
