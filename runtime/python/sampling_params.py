"""How tokens of a request are chosen. The definitions are runtime/src/sampler.h and logit_rules.h."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from llmc.runtime.structured import StructuredOutputs

#: f(tokens int32 [n], num_prompt_tokens, mask uint32 [(vocab_size + 31) // 32]): clears bit t % 32 of mask[t // 32]
#: for each token t that may not come after `tokens`, which are prompt and output so far.
TokenMask = Callable[[npt.NDArray[np.int32], int, npt.NDArray[np.uint32]], None]
#: f(tokens int32 [n], num_prompt_tokens, logits float32 [vocab_size]): changes logits in place, after all other rules.
LogitsProcessor = Callable[[npt.NDArray[np.int32], int, npt.NDArray[np.float32]], None]


@dataclass
class SamplingParams:
    """Names and meanings follow vLLM. Ranges are checked when a request is submitted."""

    max_tokens: int = 16
    min_tokens: int = 0  #: neither eos nor a stop token or string ends the output before
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
    #: Log probabilities under the raw model, before all that is below. 0: of the chosen tokens; n: also of the n
    #: likeliest of each place; None: nothing.
    logprobs: int | None = None
    prompt_logprobs: int | None = None  #: the same of the prompt's tokens, which are then computed anew
    repetition_penalty: float = 1.0  #: of tokens in prompt and output: positive logits by it, others times it
    presence_penalty: float = 0.0  #: subtracted once for a token of the output
    frequency_penalty: float = 0.0  #: subtracted for each time that a token is in the output
    no_repeat_ngram_size: int = 0  #: n: no n tokens of prompt and output come twice; 0: off
    logit_bias: Mapping[int, float] | None = None  #: added, -100 to 100
    #: Texts (with and without a space before them) or token ids that do not come in the output.
    bad_words: Sequence[str | Sequence[int]] | None = None
    allowed_token_ids: Sequence[int] | None = None  #: nothing else comes
    structured_outputs: StructuredOutputs | None = None  #: a grammar that the output follows
    #: 0 to 100: of the KV blocks that can be reused, those of lower priority make room first, then the oldest ones.
    retention_priority: int = 35
    #: Called by the engine's own thread between two steps: they must be quick and must not call the engine.
    token_mask: TokenMask | None = None
    logits_processor: LogitsProcessor | None = None

    n: int = 1  #: answers to the prompt, which is computed once; with a seed they take seed, seed + 1, ...
    #: Answers to generate, of which the n with the highest mean log probability of a token are returned, best first.
    best_of: int | None = None

    #: Above 1: beam search, the algorithm of transformers' num_beams. The n best of beam_width answers are returned,
    #: best first, all at the end. It draws nothing: temperature, top_p, top_k and min_p stay at their defaults.
    beam_width: int = 1
    length_penalty: float = 1.0  #: answers compare by the sum of log probabilities over length to this power
    #: When beam_width answers are there: False goes on while one of the present length may be better, True ends,
    #: "never" goes on while one of any length may be.
    early_stopping: bool | Literal["never"] = False

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"n must be at least 1, found {self.n}")
        if self.best_of is not None and self.best_of < self.n:
            raise ValueError(f"best_of must be at least n, which is {self.n}, found {self.best_of}")
        for name in ("logprobs", "prompt_logprobs"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} must be None or at least 0, found {value}")
        if self.seed is not None and not 0 <= self.seed < 2**64:
            raise ValueError(f"seed must be in [0, 2**64), found {self.seed}")
        if any(not text for text in self.stop_strings):
            raise ValueError("stop strings must not be empty")
        if self.structured_outputs is not None and (self.token_mask is not None or self.ignore_eos):
            other = "ignore_eos" if self.ignore_eos else "token_mask"
            raise ValueError(f"structured_outputs and {other} exclude each other: a grammar ends with eos")

        self._check_beams()

    def _check_beams(self) -> None:
        if self.beam_width < 1:
            raise ValueError(f"beam_width must be at least 1, found {self.beam_width}")
        if self.early_stopping not in (False, True, "never"):
            raise ValueError(f'early_stopping must be False, True or "never", found {self.early_stopping!r}')
        if self.beam_width == 1:
            return
        if self.n > self.beam_width:
            raise ValueError(f"n must be at most beam_width, which is {self.beam_width}, found {self.n}")
        refused = {
            "best_of": (self.best_of is not None, "n chooses among the answers of the beams"),
            "stop": (bool(self.stop_strings), "beams are searched as tokens; use stop_token_ids"),
            "structured_outputs": (self.structured_outputs is not None, "a grammar follows one answer"),
        }
        for name, (given, why) in refused.items():
            if given:
                raise ValueError(f"{name} and a beam_width above 1 exclude each other: {why}")

    @property
    def num_sequences(self) -> int:
        """Requests that the engine gets."""
        if self.beam_width > 1:
            return self.beam_width
        return self.n if self.best_of is None else self.best_of

    @property
    def stop_strings(self) -> list[str]:
        if self.stop is None:
            return []
        return [self.stop] if isinstance(self.stop, str) else list(self.stop)
