"""A loaded engine: text or token ids in, outputs or streams out."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numpy as np
import numpy.typing as npt

from llmc.runtime import _runtime
from llmc.runtime.config import KvCacheConfig, SchedulerConfig
from llmc.runtime.histogram import Histogram
from llmc.runtime.load_options import load_options
from llmc.runtime.outputs import CompletionDelta, RequestOutput
from llmc.runtime.request_group import RequestGroup, copies
from llmc.runtime.request_state import RequestState
from llmc.runtime.sampling_options import sampling_options
from llmc.runtime.sampling_params import SamplingParams
from llmc.runtime.structured import GrammarCompiler
from llmc.runtime.tokenizer import Tokenizer

#: A text, token ids, or the vLLM forms {"prompt": text} and {"prompt_token_ids": ids}, which may carry
#: a "cache_salt" text: prompts share KV blocks with those of the same salt only.
Prompt = str | Sequence[int] | Mapping[str, Any]

_Self = TypeVar("_Self", bound="Engine")

# Waiting in C++ cannot be interrupted, so it comes up for Ctrl-C this often.
_POLL_SECONDS = 0.2


class Engine:
    """Thread-safe: requests of all threads share the same batches.

    ``trace_file`` gets each step in Chrome's trace event format, for ui.perfetto.dev; it is whole after close().
    When a step does not end for ``stall_seconds`` its requests fail (0: 60 on a GPU, 600 on the host; < 0: never).
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        num_threads: int | None = None,
        device: int = 0,
        kv_cache_config: KvCacheConfig | None = None,
        scheduler_config: SchedulerConfig | None = None,
        verify_weights: Literal["auto", "always", "never"] = "auto",
        cuda_library: str | None = None,
        cuda_graphs: bool = True,
        overlap: bool = True,
        trace_file: str | os.PathLike[str] | None = None,
        stall_seconds: float = 0.0,
    ) -> None:
        self.path = Path(path)
        self._native = _runtime.Engine(
            str(self.path),
            load_options(
                num_threads=num_threads,
                device=device,
                kv_cache_config=kv_cache_config,
                scheduler_config=scheduler_config,
                verify_weights=verify_weights,
                cuda_library=cuda_library,
                cuda_graphs=cuda_graphs,
                overlap=overlap,
                trace_file=trace_file,
                stall_seconds=stall_seconds,
            ),
        )
        self._request_ids = itertools.count()

    def close(self) -> None:
        """Cancels what runs and frees all memory. The engine cannot be used afterwards."""
        self._native.close()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def info(self) -> dict[str, Any]:
        """Limits in force, sizes in bytes, identity; see llmc_engine_info in llmc.h."""
        return self._native.info()

    @property
    def stats(self) -> dict[str, Any]:
        """Counters since load; see llmc_engine_stats in llmc.h."""
        return self._native.stats()

    @property
    def health(self) -> str:
        """Empty while requests can be served, else why not."""
        return self._native.health()

    @property
    def histograms(self) -> dict[str, Histogram]:
        """Since load: queue_seconds, time_to_first_token_seconds, inter_token_seconds, step_seconds and
        host_step_seconds; see llmc_metric in monitoring.h."""
        return {name: Histogram(**values) for name, values in self._native.histograms().items()}

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer(self.path)

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        on_finish: Callable[[RequestOutput], None] | None = None,
        priority: int = 0,
        timeout: float | None = None,
    ) -> list[RequestOutput]:
        """Runs all prompts together and returns their outputs in order.

        ``on_finish`` is called as each one ends (for a progress bar). ``priority`` is in
        [-100, 100], lower starts first. A request that is not done ``timeout`` seconds after
        it was submitted ends with finish_reason "timeout" and what it has.
        """
        all_prompts = _as_prompts(prompts)
        params = _as_params(sampling_params, len(all_prompts))
        mailbox = _runtime.Mailbox()
        groups: list[RequestGroup] = []
        places: list[tuple[RequestGroup, int]] = []  # of each key
        try:
            for prompt, one in zip(all_prompts, params, strict=True):
                group = self.submit_group(prompt, one, mailbox, len(places), priority, timeout)
                groups.append(group)
                places += [(group, choice) for choice in range(len(group.states))]
            left = len(groups)
            while left:
                for key, event in mailbox.take(_POLL_SECONDS):
                    group, choice = places[key]
                    if group.finished:
                        continue
                    group.update(choice, event)
                    if group.finished:
                        left -= 1
                        if on_finish:
                            on_finish(group.output)
        finally:
            for group in groups:  # after an error or Ctrl-C nothing may go on in the background
                group.cancel()
        return [group.output for group in groups]

    def generate_stream(
        self,
        prompt: Prompt,
        sampling_params: SamplingParams | None = None,
        *,
        priority: int = 0,
        timeout: float | None = None,
    ) -> Iterator[CompletionDelta]:
        """Yields news of one request as they come, each of one of its n answers. With best_of they come at the end.
        Leaving the loop cancels the request."""
        mailbox = _runtime.Mailbox()
        group = self.submit_group(prompt, sampling_params or SamplingParams(), mailbox, 0, priority, timeout)
        return self._stream(group, mailbox)

    def forward(
        self,
        sequences: Sequence[Sequence[int]],
        rows: Sequence[Sequence[int]] | None = None,
        *,
        chunk_tokens: int = 0,
    ) -> list[npt.NDArray[np.float32]]:
        """Logits [rows, vocab_size] of each token sequence, teacher-forced.

        ``rows`` chooses positions of each sequence, ascending; by default all. ``chunk_tokens``
        limits the tokens of one step (for tests).
        """
        counts = [len(one) for one in (sequences if rows is None else rows)]
        logits = self._native.forward(
            _int32([id for sequence in sequences for id in sequence]),
            _int32([len(sequence) for sequence in sequences]),
            None if rows is None else _int32([row for one in rows for row in one]),
            None if rows is None else _int32(counts),
            chunk_tokens,
        )
        return np.split(logits, np.cumsum(counts)[:-1]) if counts else []

    def submit(
        self,
        prompt: Prompt,
        params: SamplingParams,
        mailbox: _runtime.Mailbox,
        key: int,
        priority: int = 0,
        timeout: float | None = None,
    ) -> RequestState:
        """Starts a request for one answer, whose news come into the mailbox under `key`, for the state's update()."""
        if params.num_sequences > 1:
            raise ValueError(f"submit takes requests for one answer, found {params.num_sequences}: use submit_group")
        return self.submit_group(prompt, params, mailbox, key, priority, timeout).states[0]

    def submit_group(
        self,
        prompt: Prompt,
        params: SamplingParams,
        mailbox: _runtime.Mailbox,
        first_key: int,
        priority: int = 0,
        timeout: float | None = None,
        choices: Sequence[SamplingParams] | None = None,
    ) -> RequestGroup:
        """Starts params.num_sequences requests for one prompt. The news of choice i come into the mailbox under
        `first_key` + i, for the group's update(); what generate and generate_stream are made of.

        choices: what self.choices(params) has returned, which may take a while.
        """
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout must be positive seconds or None, found {timeout}")
        text, ids = self._encode(prompt)
        # Token prompts work on engines without a tokenizer, unless something else is text.
        needs_text = text is not None or bool(params.stop_strings)
        tokenizer = self.tokenizer if needs_text or self._has_tokenizer else None
        choices = self.choices(params) if choices is None else choices
        all_options = [sampling_options(one, tokenizer) for one in choices]
        for options, _ in all_options:
            options.priority = priority
            options.timeout = timeout or 0.0
            options.cache_salt = _salt(prompt)
        requests = self._native.submit(_int32(ids), mailbox, first_key, [options for options, _ in all_options])
        name = str(next(self._request_ids))
        states = [
            RequestState(request, name, text, ids, one, tokenizer, guards)
            for request, one, (_, guards) in zip(requests, choices, all_options, strict=True)
        ]
        return RequestGroup(states, params)

    def choices(self, params: SamplingParams) -> list[SamplingParams]:
        """Parameters of each of the answers, with their own grammars."""
        return [self.with_grammar(one) for one in copies(params)]

    def with_grammar(self, params: SamplingParams) -> SamplingParams:
        """With the structured_outputs compiled, which may take a while. Such parameters serve one request only."""
        if params.structured_outputs is None:
            return params
        mask = self._grammars.compile(params.structured_outputs)
        return dataclasses.replace(params, structured_outputs=None, token_mask=mask)

    @cached_property
    def _grammars(self) -> GrammarCompiler:
        return GrammarCompiler(
            self.tokenizer.backend.to_str(), int(self.info["vocab_size"]), self.info["eos_token_ids"]
        )

    def _encode(self, prompt: Prompt) -> tuple[str | None, list[int]]:
        if isinstance(prompt, Mapping):
            if "prompt_token_ids" in prompt:
                return prompt.get("prompt"), list(prompt["prompt_token_ids"])
            prompt = prompt["prompt"]
        if isinstance(prompt, str):
            return prompt, self.tokenizer.encode(prompt)
        return None, [int(id) for id in prompt]

    @cached_property
    def _has_tokenizer(self) -> bool:
        try:
            return self.tokenizer is not None
        except RuntimeError:
            return False

    @staticmethod
    def _stream(group: RequestGroup, mailbox: _runtime.Mailbox) -> Iterator[CompletionDelta]:
        try:
            while not group.finished:
                for choice, event in mailbox.take(_POLL_SECONDS):
                    yield from group.update(choice, event)
        finally:
            group.cancel()


def load_engine(path: str | os.PathLike[str], **options: Any) -> Engine:
    """Loads an engine folder or archive; the options are those of :class:`Engine`."""
    return Engine(path, **options)


def _salt(prompt: Prompt) -> int:
    text = prompt.get("cache_salt") if isinstance(prompt, Mapping) else None
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") if text else 0


def _int32(values: Sequence[int]) -> npt.NDArray[np.int32]:
    wide = np.asarray(values, dtype=np.int64)
    if wide.size and (wide.min() < -(2**31) or wide.max() >= 2**31):
        raise ValueError("token ids and rows must fit 32 bits")
    return wide.astype(np.int32)


def _as_prompts(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    if isinstance(prompts, (str, Mapping)):
        return [prompts]
    # A flat list of integers is one prompt, a list of anything else is many.
    if prompts and isinstance(prompts[0], (int, np.integer)):
        return [cast("Sequence[int]", prompts)]
    return list(cast("Sequence[Prompt]", prompts))


def _as_params(params: SamplingParams | Sequence[SamplingParams] | None, count: int) -> list[SamplingParams]:
    if params is None or isinstance(params, SamplingParams):
        return [params or SamplingParams()] * count
    if len(params) != count:
        raise ValueError(f"{count} prompts need as many sampling_params, found {len(params)}")
    return list(params)
