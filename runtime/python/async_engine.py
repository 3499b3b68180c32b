"""The engine for asyncio: requests as async iterators.

One thread per AsyncEngine waits for the mailbox without the GIL and turns token ids into text, so that
the event loop neither waits nor detokenizes. It hands over everything that one look into the mailbox
found in one call.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llmc.runtime import _runtime
from llmc.runtime.engine import Engine, Prompt
from llmc.runtime.outputs import CompletionDelta
from llmc.runtime.request_group import RequestGroup
from llmc.runtime.sampling_params import SamplingParams

_POLL_SECONDS = 0.2


@dataclass
class _Stream:
    """Where the news of one request go."""

    group: RequestGroup
    loop: asyncio.AbstractEventLoop
    news: asyncio.Queue[CompletionDelta | Exception] = field(default_factory=asyncio.Queue)


class AsyncEngine:
    """Shares `engine` with other users of it; closing this does not close the engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._mailbox = _runtime.Mailbox()
        self._streams: dict[int, tuple[_Stream, int]] = {}  # and which of its answers
        self._keys = itertools.count()
        self._lock = threading.Lock()  # an event must not come before its stream is known
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._pump, name="llmc-detokenizer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Cancels what runs."""
        self._closing.set()
        with self._lock:
            for stream, _ in self._streams.values():
                stream.group.cancel()
        self._thread.join()

    @property
    def num_requests(self) -> int:
        """Answers whose end has not been seen."""
        return len(self._streams)

    async def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt, made beside the event loop."""
        if isinstance(prompt, str):
            return await asyncio.to_thread(self.engine.tokenizer.encode, prompt)
        if isinstance(prompt, Mapping):
            ids = prompt.get("prompt_token_ids")
            return await self.encode(prompt["prompt"]) if ids is None else list(ids)
        return list(prompt)

    async def generate(
        self,
        prompt: Prompt,
        sampling_params: SamplingParams | None = None,
        *,
        priority: int = 0,
        timeout: float | None = None,
    ) -> AsyncIterator[CompletionDelta]:
        """Yields news as they come, each of one of the n answers, whose last one has a finish_reason. With best_of they
        come at the end.

        Leaving the loop cancels the request (use `contextlib.aclosing`, so that it happens at once).
        Raises what Engine.generate does.
        """
        form: dict[str, Any] = dict(prompt) if isinstance(prompt, Mapping) else {}
        form["prompt_token_ids"] = await self.encode(prompt)
        params = sampling_params or SamplingParams()
        if params.structured_outputs is None:
            choices = self.engine.choices(params)
        else:
            choices = await asyncio.to_thread(self.engine.choices, params)
        stream = self._submit(form, params, choices, priority, timeout)
        left = params.n
        try:
            while True:
                news = await stream.news.get()
                if isinstance(news, Exception):
                    raise news
                yield news
                left -= news.finish_reason is not None
                if left == 0:
                    return
        finally:
            stream.group.cancel()

    def _submit(
        self,
        prompt: Prompt,
        params: SamplingParams,
        choices: Sequence[SamplingParams],
        priority: int,
        timeout: float | None,
    ) -> _Stream:
        if self._closing.is_set():
            raise RuntimeError("the engine is closing")
        with self._lock:
            keys = [next(self._keys) for _ in choices]
            group = self.engine.submit_group(prompt, params, self._mailbox, keys[0], priority, timeout, choices)
            stream = _Stream(group, asyncio.get_running_loop())
            self._streams |= {key: (stream, choice) for choice, key in enumerate(keys)}
        return stream

    def _pump(self) -> None:
        while not (self._closing.is_set() and not self._streams):
            found = self._mailbox.take(_POLL_SECONDS)
            per_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Stream, CompletionDelta | Exception]]] = {}
            with self._lock:
                events = [(*self._streams[key], key, event) for key, event in found if key in self._streams]
            for stream, choice, key, event in events:
                if event[-1] != _runtime.FINISH_RUNNING:
                    with self._lock:
                        del self._streams[key]
                try:
                    news: list[CompletionDelta | Exception] = [*stream.group.update(choice, event)]
                except Exception as error:
                    news = [error]
                if news:
                    per_loop.setdefault(stream.loop, []).extend((stream, one) for one in news)
            for loop, news_of_loop in per_loop.items():
                with contextlib.suppress(RuntimeError):  # that loop has ended, and its iterators with it
                    loop.call_soon_threadsafe(_deliver, news_of_loop)


def _deliver(news: list[tuple[_Stream, CompletionDelta | Exception]]) -> None:
    for stream, one in news:
        stream.news.put_nowait(one)
