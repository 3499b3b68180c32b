"""Online softmax over pages of scores, for the attention kernel.

State: the running maximum (in score units) and the running sum of each row. The maximum follows the
scores only when they pass it by 2^SLACK: sums and outputs stay as exact, since all are relative to it,
and most steps have nothing to rescale. Scores are either the raw
products, which the exponential scales by `factor` inside one multiply-add, or, with a soft cap or
ALiBi, computed scores in natural units. The maximum starts finite, so a fully masked row or page
contributes exactly zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlir import ir

from ..builder import KernelBuilder, Value, constant, select
from ..builder import types as t
from . import activations
from .body import f64

LOWEST = -1e30
"""Where the running maximum starts: below every score, yet finite."""
LOG2E = math.log2(math.e)
SLACK = 8.0
"""By how many powers of two a score may pass the running maximum before the maximum follows."""


@dataclass(frozen=True)
class Softmax:
    """The softmax of one `llm.paged_attention` op.

    `position(row)` is the position of a row in its sequence, `head(row)` its query head; `alibi` and
    `sinks` are the pointers of these operands, or None.
    """

    k: KernelBuilder
    op: Any
    scores: ir.Type
    rows: ir.Type
    weights: ir.Type
    position: Callable[[Value], Value]
    head: Callable[[Value], Value]
    alibi: Value | None = None
    sinks: Value | None = None

    @property
    def raw_scores(self) -> bool:
        """Whether scores are the raw products: scaling by a positive number keeps their order."""
        return self.alibi is None and "softcap" not in self.op.attributes and f64(self.op, "scale") > 0

    @property
    def factor(self) -> float:
        """What a score is multiplied by to be an exponent of two."""
        return LOG2E * (f64(self.op, "scale") if self.raw_scores else 1.0)

    def start(self) -> tuple[Value, Value]:
        """(maximum, total) before any page."""
        return self.k.fill(self.k.f32(LOWEST), self.rows), self.k.fill(self.k.f32(0.0), self.rows)

    def step(
        self, raw: Value, at: tuple[Value, Value], maximum: Value, total: Value, *, masked: bool
    ) -> tuple[Value, Value, Value, Value, Value]:
        """One more step of products: (P of type `weights`, maximum, total, scale of what was summed before,
        its exponent of two).

        `at` is (row, position of the first key) of the page's corner; without `masked`, every key of
        the page is visible to every row.
        """
        k, rows, factor = self.k, self.rows, self.factor
        two = [t.f32(), t.f32()]

        def score(x: Value, row: Value, column: Value) -> Value:
            return self._score(x, row, column, masked)

        scores = raw if self.raw_scores and not masked else k.map([raw], [t.f32()], score, [self.scores], at=at)
        highest = k.row_reduce("max", scores, rows)

        def follow(old: Value, new: Value, row: Value, column: Value) -> Value:
            return select((new - old) * factor > SLACK, new, old)

        new = k.map([maximum, highest], two, follow, [rows])
        offset = k.map([new], [t.f32()], lambda m, r, c: m * -factor, [rows])
        weights = k.map([scores, offset], two, lambda s, o, r, c: _exponential(s, factor, o), [self.scores])
        # A difference, not a multiply-add: for two maxima at LOWEST its rounding would be infinite.
        shift = k.map([maximum, new], two, lambda a, b, r, c: (a - b) * factor, [rows])
        scale = k.map([shift], [t.f32()], lambda s, r, c: s.exp2(), [rows])
        added = k.row_reduce("add", weights, rows, partial=True)
        total = k.map([total, scale, added], [*two, t.f32()], lambda s, f, a, r, c: s * f + a, [rows])
        return k.convert(weights, self.weights), new, total, scale, shift

    def finish(self, maximum: Value, total: Value, row: Value) -> Value:
        """The sum of each row over all its threads and the attention sink; `row` is the first row."""
        k, factor = self.k, self.factor
        total = k.row_reduce("add", total, self.rows)
        if self.sinks is None:
            return total

        def add(s: Value, m: Value, r: Value, _: Value) -> Value:
            return s + (self.sink(r) * LOG2E - m * factor).exp2()

        return k.map([total, maximum], [t.f32(), t.f32()], add, [self.rows], at=(row, 0))

    def sink(self, row: Value) -> Value:
        """The attention sink of a row's head, in natural units; only where there are sinks."""
        assert self.sinks is not None
        return self.k.load(self.sinks, self.head(row)).to(t.f32())

    def _score(self, raw: Value, row: Value, column: Value, masked: bool) -> Value:
        position = self.position(row)
        value = raw if self.raw_scores else raw * f64(self.op, "scale")
        if "softcap" in self.op.attributes:
            cap = f64(self.op, "softcap")
            value = activations.tanh(value * (1.0 / cap)) * cap
        if self.alibi is not None:
            slope = self.k.load(self.alibi, self.head(row)).to(t.f32())
            value = value + slope * (column.to(t.f32()) - position.to(t.f32()))
        if not masked:
            return value
        visible = column <= position
        if "window" in self.op.attributes:
            window = ir.IntegerAttr(self.op.attributes["window"]).value
            visible = visible & (column + window > position)
        return select(visible, value, -math.inf)


def _exponential(score: Value, factor: float, offset: Value) -> Value:
    """2^(score * factor + offset) with one multiply-add."""
    return score.fma(constant(factor, t.f32()), offset).exp2()
