"""POST /v1/completions."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from functools import partial

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.responses import Response

from llmc.runtime.outputs import CompletionDelta
from llmc.runtime.tokenizer import Tokenizer
from llmc.server.errors import ApiError
from llmc.server.generation import Generation, answered, encode
from llmc.server.logprobs import TextLogprobs
from llmc.server.models import ServedModel
from llmc.server.protocol import Completion, CompletionChoice, CompletionLogprobs, CompletionRequest
from llmc.server.sampling import room, sampling_params
from llmc.server.state import state_of
from llmc.server.streaming import EventStream, as_json, event, text_events, unless_disconnected

router = APIRouter()
_DEFAULT_MAX_TOKENS = 16  # OpenAI's


@router.post("/v1/completions", responses=answered(Completion), response_model=None)
async def create_completion(body: CompletionRequest, request: Request) -> Response:
    """Continues each prompt (text or token ids)."""
    state = state_of(request)
    model = state.models.get(body.model)
    prompts = await _token_ids(body, model)
    default = state.config.default_max_tokens or _DEFAULT_MAX_TOKENS
    if body.max_tokens == 0 and not body.echo:
        raise ApiError(400, "max_tokens: expected at least 1, or 0 with echo, found 0", param="max_tokens")
    asked = None if body.max_tokens is None else max(body.max_tokens, 1)
    params = [sampling_params(body, model, room(model, len(ids), asked, default), body.logprobs) for ids in prompts]
    if body.echo and body.logprobs is not None:
        params = [dataclasses.replace(one, prompt_logprobs=body.logprobs) for one in params]
    generation = Generation(state, model, prompts, params, body, hide_output=body.max_tokens == 0)
    work = _Work(body, generation, await _echoes(body, model, prompts))
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
        return [TextLogprobs(tokenizer) for _ in self.echoes for _ in range(n)]

    def _taken(self, source: TextLogprobs, index: int, news: CompletionDelta) -> CompletionLogprobs | None:
        """Of the echoed prompt, where this is the first news, and of the new tokens."""
        before = None
        if news.prompt_logprobs is not None:
            prompt = self.generation.prompts[index // self.generation.n]
            before = source.take(prompt, news.prompt_logprobs, news.prompt_top_logprobs)
        found = source.take(news.token_ids, news.logprobs, news.top_logprobs)
        return found if before is None else _joined(before, found)

    async def answer(self) -> Completion:
        n = self.generation.n
        choices = [CompletionChoice(index=i * n + j, text=echo) for i, echo in enumerate(self.echoes) for j in range(n)]
        logprobs = self._logprobs()
        async with contextlib.aclosing(self.generation.stream()) as all_news:
            async for index, news in all_news:
                choice = choices[index]
                choice.text += news.text
                choice.finish_reason, choice.stop_reason = news.finish_reason, news.stop_reason  # type: ignore[assignment]
                found = self._taken(logprobs[index], index, news)
                choice.logprobs = found if choice.logprobs is None else _joined(choice.logprobs, found)
        return self.head.model_copy(update={"choices": choices, "usage": self.generation.usage()})

    def _chunk(self, index: int, text: str) -> Completion:
        return self.head.model_copy(update={"choices": [CompletionChoice(index=index, text=text)]})

    async def events(self, log: dict[str, object]) -> AsyncGenerator[bytes, None]:
        n = self.generation.n
        options = self.body.stream_options
        running = bool(options and options.continuous_usage_stats)
        echo = [echo for echo in self.echoes for _ in range(n)]
        logprobs = self._logprobs()
        only_text = [text_events(partial(self._chunk, index)) for index in range(len(echo))]
        try:
            async with contextlib.aclosing(self.generation.stream()) as all_news:
                async for index, news in all_news:
                    text, echo[index] = echo[index] + news.text, ""
                    if news.finish_reason is None and news.logprobs is None and not running:
                        if text:  # else in the middle of a character, or of what may be a stop string
                            yield only_text[index](text)
                        continue
                    if not text and news.finish_reason is None and news.logprobs is None:
                        continue
                    choice = CompletionChoice(
                        index=index,
                        text=text,
                        logprobs=self._taken(logprobs[index], index, news),
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
        if left.top_logprobs is not None and right.top_logprobs is not None:
            left.top_logprobs += right.top_logprobs
    return left
