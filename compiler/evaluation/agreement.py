"""How close a model's distributions are to a reference's, token by token, teacher-forced."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from llmc.compiler.evaluation.scorer import Logits, Scorer, check_windows, log_softmax
from llmc.compiler.evaluation.text import Window
from llmc.errors import EngineError


@dataclass(frozen=True)
class AgreementResult:
    """kl_divergence: of the model from the reference, KL(reference || model), nats, mean over tokens."""

    tokens: int
    top1_agreement: float
    kl_divergence: float
    max_kl_divergence: float
    mean_abs_logit_difference: float
    max_abs_logit_difference: float
    perplexity: float
    reference_perplexity: float


class Agreement:
    """Sums over windows."""

    def __init__(self) -> None:
        self.tokens = self.agreeing = 0
        self.divergence = self.largest_divergence = 0.0
        self.difference = self.largest_difference = 0.0
        self.loss = self.reference_loss = 0.0

    def add(self, logits: Logits, reference: Logits, targets: Sequence[int], where: str = "logits") -> None:
        """logits, reference: float32 [tokens, vocab]; targets: [tokens], what the text says comes next."""
        logp = log_softmax(reference, f"the reference, {where}")
        logq = log_softmax(logits, where)
        rows = np.arange(len(targets))
        divergence = (np.exp(logp) * (logp - logq)).sum(axis=1)
        difference = np.abs(logits - reference)
        self.tokens += len(targets)
        self.agreeing += int((logits.argmax(axis=1) == reference.argmax(axis=1)).sum())
        self.divergence += float(divergence.sum())
        self.largest_divergence = max(self.largest_divergence, float(divergence.max()))
        self.difference += float(difference.mean(axis=1, dtype=np.float64).sum())
        self.largest_difference = max(self.largest_difference, float(difference.max()))
        self.loss -= float(logq[rows, targets].sum())
        self.reference_loss -= float(logp[rows, targets].sum())

    def result(self) -> AgreementResult:
        return AgreementResult(
            tokens=self.tokens,
            top1_agreement=self.agreeing / self.tokens,
            kl_divergence=self.divergence / self.tokens,
            max_kl_divergence=self.largest_divergence,
            mean_abs_logit_difference=self.difference / self.tokens,
            max_abs_logit_difference=self.largest_difference,
            perplexity=math.exp(self.loss / self.tokens),
            reference_perplexity=math.exp(self.reference_loss / self.tokens),
        )


def agreement(
    scorer: Scorer,
    reference: Scorer,
    windows: Sequence[Window],
    advance: Callable[[int], None] = lambda count: None,
) -> AgreementResult:
    """`advance` is told of each window that is done."""
    if scorer.vocab_size != reference.vocab_size:
        raise EngineError(
            f"{scorer.name} has {scorer.vocab_size} tokens, {reference.name} has {reference.vocab_size}: "
            "expected two forms of one model"
        )
    check_windows(scorer, windows)
    check_windows(reference, windows)
    total = Agreement()
    pairs = zip(windows, scorer.logits(windows), reference.logits(windows), strict=True)
    for index, (window, ours, theirs) in enumerate(pairs):
        total.add(ours, theirs, window.targets, f"{scorer.name}, window {index}")
        advance(1)
    return total.result()
