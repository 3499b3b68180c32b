from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

version: str
FINISH_RUNNING: int
FINISH_STOP: int
FINISH_LENGTH: int
FINISH_CANCELLED: int
FINISH_ERROR: int
FINISH_DEADLINE: int

Event = tuple[list[int], list[float], list[dict[int, float]], int]

class Mailbox:
    def __init__(self) -> None: ...
    def take(self, timeout: float) -> list[tuple[int, Event]]: ...

class Request:
    def cancel(self) -> None: ...
    def set_priority(self, priority: int) -> None: ...
    @property
    def reused_tokens(self) -> int: ...
    def prompt_logprobs(self) -> list[tuple[float, dict[int, float]]]: ...
    def raise_error(self) -> None: ...

class LoadOptions:
    num_threads: int
    device: int
    kv_cache_tokens: int
    kv_cache_bytes: int
    free_memory_fraction: float
    max_batch_size: int
    max_num_tokens: int
    policy: int
    verify_weights: int
    cuda_library: str | None
    cuda_graphs: bool
    enable_block_reuse: bool
    enable_partial_reuse: bool
    host_memory_bytes: int
    overlap: bool
    trace_file: str | None
    stall_seconds: float
    max_waiting: int
    def __init__(self) -> None: ...

class SamplingOptions:
    max_tokens: int
    min_tokens: int
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    seed: int | None
    ignore_eos: bool
    logprobs: int
    prompt_logprobs: int
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    no_repeat_ngram_size: int
    priority: int
    timeout: float
    cache_salt: int
    retention_priority: int
    beam_width: int
    length_penalty: float
    early_stopping: int
    stop_token_ids: list[int]
    allowed_token_ids: list[int]
    logit_bias: list[tuple[int, float]]
    bad_words: list[list[int]]
    token_mask: Callable[..., None] | None
    logits_processor: Callable[..., None] | None
    def __init__(self) -> None: ...

class Profiler:
    def __init__(self, path: str, options: LoadOptions) -> None: ...
    def close(self) -> None: ...
    def bandwidth(self) -> float: ...
    def step(
        self, num_sequences: int, num_tokens: int, context: int, repeats: int = 5
    ) -> tuple[float, list[tuple[str, int, float, float]]]: ...

class Engine:
    def __init__(self, path: str, options: LoadOptions) -> None: ...
    def close(self) -> None: ...
    def info(self) -> dict[str, Any]: ...
    def stats(self) -> dict[str, Any]: ...
    def health(self) -> str: ...
    def histograms(self) -> dict[str, dict[str, Any]]: ...
    def submit(
        self,
        prompt: npt.NDArray[np.int32],
        mailbox: Mailbox,
        first_key: int,
        options: list[SamplingOptions],
    ) -> list[Request]: ...
    def forward(
        self,
        tokens: npt.NDArray[np.int32],
        lengths: npt.NDArray[np.int32],
        rows: npt.NDArray[np.int32] | None = None,
        num_rows: npt.NDArray[np.int32] | None = None,
        chunk_tokens: int = 0,
    ) -> npt.NDArray[np.float32]: ...
