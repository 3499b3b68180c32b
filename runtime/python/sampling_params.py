"""How tokens of a request are chosen. The algorithm is defined in runtime/src/sampler.h."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class SamplingParams:
    """Names and meanings follow vLLM. Ranges are checked when a request is submitted."""

    max_tokens: int = 16
    temperature: float = 1.0  #: 0 is greedy
    top_p: float = 1.0
    top_k: int = 0  #: 0 or -1: all tokens
    min_p: float = 0.0
    seed: int | None = None  #: same seed, same tokens, whatever else is in the batch
    stop: str | Sequence[str] | None = None  #: matched on the decoded text
    stop_token_ids: Sequence[int] = field(default_factory=list)
    ignore_eos: bool = False
    include_stop_str_in_output: bool = False
    skip_special_tokens: bool = True
    #: 0: the log probability of each chosen token under the raw model; None: nothing
    logprobs: int | None = None

    def __post_init__(self) -> None:
        if self.logprobs not in (None, 0):
            raise ValueError(f"logprobs must be None or 0 (the chosen token's), found {self.logprobs}")
        if self.seed is not None and not 0 <= self.seed < 2**64:
            raise ValueError(f"seed must be in [0, 2**64), found {self.seed}")
        if any(not text for text in self.stop_strings):
            raise ValueError("stop strings must not be empty")

    @property
    def stop_strings(self) -> list[str]:
        if self.stop is None:
            return []
        return [self.stop] if isinstance(self.stop, str) else list(self.stop)
