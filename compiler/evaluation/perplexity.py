"""Perplexity: exp of the mean negative log probability of the text's tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from llmc.compiler.evaluation.scorer import Scorer, check_windows, log_softmax
from llmc.compiler.evaluation.text import Window


@dataclass(frozen=True)
class PerplexityResult:
    """`loss` is the mean negative log probability in nats; `standard_error` that of the loss, over tokens.

    Tokens of a text are not independent, so take the error as a lower bound.
    """

    tokens: int
    loss: float
    standard_error: float

    @property
    def perplexity(self) -> float:
        return math.exp(self.loss)


def perplexity(
    scorer: Scorer, windows: Sequence[Window], advance: Callable[[int], None] = lambda count: None
) -> PerplexityResult:
    """`advance` is told of each window that is done."""
    check_windows(scorer, windows)
    losses = []
    for index, (window, logits) in enumerate(zip(windows, scorer.logits(windows), strict=True)):
        logp = log_softmax(logits, f"{scorer.name}, window {index}")
        losses.append(-logp[np.arange(len(logp)), window.targets])
        advance(1)
    every = np.concatenate(losses)
    error = float(every.std(ddof=1) / math.sqrt(every.size)) if every.size > 1 else math.inf
    return PerplexityResult(int(every.size), float(every.mean()), error)
