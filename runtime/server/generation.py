"""The answers to one HTTP request: every prompt n times, as one stream of news."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

from pydantic import BaseModel

from llmc.runtime import SamplingParams
from llmc.runtime.outputs import CompletionDelta
from llmc.server.errors import ApiError, documented
from llmc.server.models import ServedModel
from llmc.server.protocol import PromptDetails, Sampling, Usage
from llmc.server.state import ServerState
from llmc.server.streaming import merged

#: What may come instead of an answer.
ANSWERS = documented(400, 404, 413, 429, 500, 503)


def answered(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """The answers of a path that answers whole or streamed, for its OpenAPI description."""
    return {200: {"model": model, "content": {"text/event-stream": {}}}, **ANSWERS}


async def encode(model: ServedModel, text: str, add_special_tokens: bool = True) -> list[int]:
    """Token ids, made beside the event loop. Text that cannot fit is refused before that work."""
    tokenizer = model.tokenizer
    most = model.max_length * model.longest_token
    if len(text) > most:
        raise ApiError(
            400,
            f"the prompt has {len(text)} characters; model '{model.name}' holds {model.max_length} tokens, "
            f"which is at most {most} characters: send a shorter prompt",
            code="context_length_exceeded",
        )
    return await asyncio.to_thread(tokenizer.encode, text, add_special_tokens)


class Generation:
    """`prompts` are token ids; choice i is answer i % n to prompt i // n. Iterate once."""

    def __init__(
        self,
        state: ServerState,
        model: ServedModel,
        prompts: Sequence[list[int]],
        params: Sequence[SamplingParams],
        body: Sampling,
        hide_output: bool = False,
    ) -> None:
        self.state, self.model, self.body = state, model, body
        self.prompts, self.params = prompts, params
        self.n = body.n
        self.hide_output = hide_output  # only the prompt's log probabilities are wanted
        self.generated = 0
        self.cached = 0

    async def stream(self) -> AsyncGenerator[tuple[int, CompletionDelta], None]:
        """(choice, news) as they come. Raises ApiError or the engine's errors, some before anything runs."""
        with self.state.admission.admit(sum(params.num_sequences for params in self.params)):
            sources = [self._one(ids, params) for ids, params in zip(self.prompts, self.params, strict=True)]
            async with contextlib.aclosing(merged(sources)) as all_news:
                async for prompt, news in all_news:
                    yield prompt * self.n + news.index, news

    async def _one(self, ids: list[int], params: SamplingParams) -> AsyncGenerator[CompletionDelta, None]:
        watches = [self.state.metrics.watch(self.model.name, len(ids)) for _ in range(self.n)]
        reasons = ["abort"] * self.n
        prompt = {"prompt_token_ids": ids, "cache_salt": self.body.cache_salt}
        source: AsyncIterator[CompletionDelta] = self.model.engine.generate(
            prompt, params, priority=self.body.priority, timeout=self.state.config.request_timeout
        )
        try:
            async with contextlib.aclosing(source) as deltas:  # type: ignore[type-var]
                async for delta in deltas:
                    watches[delta.index].news(len(delta.token_ids))
                    if self.hide_output:
                        shown: list[float] | None = None if delta.logprobs is None else []
                        delta = dataclasses.replace(delta, text="", token_ids=[], logprobs=shown, stop_reason=None)
                        delta.finish_reason = "length" if delta.finish_reason == "stop" else delta.finish_reason
                    self.generated += len(delta.token_ids)
                    if delta.finish_reason == "abort":
                        raise ApiError(503, "the server is shutting down: ask again", code="shutting_down")
                    if delta.finish_reason is not None:
                        reasons[delta.index] = delta.finish_reason
                        self.cached += delta.num_cached_tokens
                    yield delta
        except Exception:
            reasons = ["error" if reason == "abort" else reason for reason in reasons]
            raise
        finally:
            for watch, reason in zip(watches, reasons, strict=True):
                watch.end(reason)

    def usage(self) -> Usage:
        """So far. A prompt counts once, however many answers it gets."""
        prompt = sum(len(ids) for ids in self.prompts)
        return Usage(
            prompt_tokens=prompt,
            completion_tokens=self.generated,
            total_tokens=prompt + self.generated,
            prompt_tokens_details=PromptDetails(cached_tokens=min(self.cached, prompt)),
        )

    def note(self, log: dict[str, object]) -> None:
        """Puts what was done into the request's log line."""
        usage = self.usage()
        log.update(model=self.model.name, prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)
