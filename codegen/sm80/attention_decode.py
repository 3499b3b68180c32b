"""Paged attention of few tokens on mma.sync: decode. One block a split of a tile's keys.

Threads, rings, timeline: those of attention.py, over the pages of one split.
Grid:       (KV heads, tiles, most splits); a block past the splits of its tile ends at once

A tile of n pages has ceil(n / chunk) splits of chunk = max(least, ceil(n / most)) pages: a function of
its own length alone, so that neighbours in the batch change no bits. A tile of one split stores its
rows directly; otherwise each split stores its part for attention_merge.py, whose workspace it is. A row
that sees no key of a split has the total 0 and a maximum near -1e30 there, which the merge weighs by zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir import ir

from ..builder import KernelBuilder, Value
from ..builder import types as t
from ..gpu.attention_merge import Workspace
from ..gpu.attention_tile import ROWS
from ..gpu.softmax import Softmax
from ..kernel import Argument, Expression
from .attention import Attention


@dataclass(frozen=True)
class Splits:
    """At most `most` splits of a tile, of `least` pages or more."""

    most: int
    least: int


class _Decode(Attention):
    def __init__(self, kernel_op: Any, splits: Splits, workspace: Workspace):
        super().__init__(kernel_op, "_decode")
        self.splits, self.workspace = splits, workspace

    def _grid(self) -> tuple[Expression, ...]:
        heads, tiles, _ = super()._grid()
        return heads, tiles, self.splits.most

    def extra_types(self) -> dict[str, ir.Type]:
        f32s = t.ptr(t.f32())
        own = {"sums": f32s, "ends": f32s, "counts": t.ptr(t.i32()), "least": t.i32()}
        return super().extra_types() | own

    def _arguments(self) -> list[Argument]:
        return [*super()._arguments(), *self.workspace.arguments(), {"i32": self.splits.least}]

    def pages(self, k: KernelBuilder) -> tuple[Value, Value]:
        """Pages [first, last) of this split; sets its number and how many there are."""
        first, last = super().pages(k)
        self.split, self.most = k.program_id("z"), k.num_programs("z")
        pages = last - first
        chunk = ((pages + self.most - 1) // self.most).max(self.extra["least"])
        self.count = (pages + chunk - 1) // chunk
        begin = first + self.split * chunk
        return begin, (begin + chunk).min(last)

    @property
    def works(self) -> Value:
        return self.active & (self.split < self.count)

    def _finish(self, softmax: Softmax, out: Value, maximum: Value, total: Value) -> None:
        k = self.k
        with k.if_(self.split.equals(0)):
            self._store_counts()
        with k.if_(self.count.equals(1)):
            self._store(out, softmax.finish(maximum, total, k.i32(0)))
        with k.if_(self.count > 1):
            self._store_ends(maximum, k.row_reduce("add", total, self.rows), softmax.factor)
            self._store_sums(out)

    def _at(self, row: Value) -> tuple[Value, Value]:
        """(index of the row among [T, heads], whether it is one of the sequence)."""
        token, head = self.row(row)
        return (self.first_row + token) * self.heads + head, token < self.q_len

    def _store_counts(self) -> None:
        def store(row: Value) -> None:
            at, inside = self._at(row)
            self.k.store(self.count, self.extra["counts"], at, condition=inside)

        self.k.for_each(0, ROWS, store)

    def _store_ends(self, maximum: Value, total: Value, factor: float) -> None:
        k, ends = self.k, self.extra["ends"]

        def store(m: Value, s: Value, row: Value, column: Value) -> None:
            at, inside = self._at(row)
            place = (at * self.most + self.split) * 2
            k.store(m * factor, ends, place, condition=inside)
            k.store(s, ends, place + 1, condition=inside)

        k.epilogue([maximum, total], [t.f32(), t.f32()], store, at=(0, 0))

    def _store_sums(self, out: Value) -> None:
        k = self.k

        def store(v: Value, row: Value, column: Value) -> None:
            at, inside = self._at(row)
            k.store(v, self.extra["sums"], (at * self.most + self.split) * self.dim + column, condition=inside)

        k.epilogue([out], [t.vector(2, t.f32())], store, at=(0, 0))


def build(
    kernel_op: Any, splits: Splits, workspace: Workspace
) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: the KV heads by an upper bound of the tiles by the most splits.

    The code does not depend on `splits` or `workspace`, only the grid and the arguments do.
    """
    return _Decode(kernel_op, splits, workspace).build()
