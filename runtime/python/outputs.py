"""What a request returns; field names follow vLLM."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

FinishReason = Literal["stop", "length", "abort", "timeout"]


@dataclass
class CompletionOutput:
    index: int
    text: str
    token_ids: list[int]
    cumulative_logprob: float | None = None
    logprobs: list[float] | None = None  #: of the chosen tokens, when asked for
    top_logprobs: list[dict[int, float]] | None = None  #: with logprobs > 0, of the likeliest, descending
    finish_reason: FinishReason | None = None
    stop_reason: int | str | None = None  #: the stop token or string; None for eos and length


@dataclass
class RequestOutput:
    request_id: str
    prompt: str | None
    prompt_token_ids: list[int]
    outputs: list[CompletionOutput] = field(default_factory=list)
    #: With prompt_logprobs, of each token of the prompt; None for the first, which nothing precedes.
    prompt_logprobs: list[float | None] | None = None
    prompt_top_logprobs: list[dict[int, float] | None] | None = None
    finished: bool = False
    num_cached_tokens: int = 0  #: prompt tokens whose K and V were found in the cache


@dataclass
class CompletionDelta:
    """The news since the last one. Text holds whole characters only and never part of a stop string."""

    text: str
    token_ids: list[int]
    logprobs: list[float] | None = None
    top_logprobs: list[dict[int, float]] | None = None
    finish_reason: FinishReason | None = None
    stop_reason: int | str | None = None
    #: With the first tokens, as in RequestOutput.
    prompt_logprobs: list[float | None] | None = None
    prompt_top_logprobs: list[dict[int, float] | None] | None = None
    num_cached_tokens: int = 0  #: with the finish_reason of the first answer: prompt tokens found in the cache
    index: int = 0  #: of the answer, in [0, n)
