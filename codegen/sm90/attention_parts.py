"""Splits of a tile that meet: each leaves its part in the workspace, the last to arrive adds them up.

Workspace: sums f32 [T, heads, most, dim] (not divided), ends f32 [T, heads, most, 2] (the maximum in
exponents of two, the total). Zeroed memory: arrivals i32 [T * heads], zero again behind each launch.

    out = sum(O_z 2^(m_z - M)) / (sum(l_z 2^(m_z - M)) + 2^(sink - M)),  M = max(m_z)

Which block adds is chance, the order of every sum is not: it depends on the number of splits alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir

from ..builder import KernelBuilder, Value, select
from ..builder import types as t
from ..builder.approx import reciprocal
from ..gpu.softmax import LOG2E, LOWEST

WARPS = 4
UNROLL = 16
"""Splits whose loads a lane has in flight."""


@dataclass(frozen=True)
class Parts:
    """The parts of one tile: `count` of at most `most` splits, of which this is number `split`; `dtype` of the
    result.

    `at(row)` is (index of the tile's row among [T, heads], whether it is one of the sequence).
    """

    k: KernelBuilder
    sums: Value
    ends: Value
    arrivals: Value
    most: Value
    split: Value
    count: Value
    at: Callable[[Value], tuple[Value, Value]]
    dim: int
    dtype: ir.Type

    def store(self, out: Value, maximum: Value, total: Value, factor: float) -> None:
        """Stores this part: O, the maximum in score units and the total of each row."""
        k = self.k

        def store_ends(m: Value, s: Value, row: Value, _: Value) -> None:
            at, inside = self.at(row)
            place = (at * self.most + self.split) * 2
            k.store(m * factor, self.ends, place, condition=inside)
            k.store(s, self.ends, place + 1, condition=inside)

        def store_sums(v: Value, row: Value, column: Value) -> None:
            at, inside = self.at(row)
            place = (at * self.most + self.split) * self.dim + column
            k.store(v, self.sums, place, condition=inside)

        k.epilogue([maximum, total], [t.f32(), t.f32()], store_ends, at=(k.i32(0), 0))
        k.epilogue([out], [t.vector(2, t.f32())], store_sums, at=(k.i32(0), 0))

    def arrive(self, tile: Value, flag: Value) -> Value:
        """Whether all other splits of the tile have stored their parts; all threads of the role call it.

        tile: its number among the arrivals. flag: !tile.smem<1xi32>, scratch.
        """
        k = self.k
        k.barrier("role")
        with k.if_(k.thread_index().equals(0)):
            before = k.atomic("add", k.i32(1), self.arrivals, tile)
            last = before.equals(self.count - 1)
            k.store(k.i32(0), self.arrivals, tile, condition=last)
            k.store(select(last, k.i32(1), 0), flag, 0)
        k.barrier("role")
        return k.load(flag, 0).equals(1)

    def merge(self, rows: Value, out: Value, sink: Callable[[Value], Value] | None) -> None:
        """Adds up the parts of the tile's first `rows` rows, a warp a row; `sink(row)` in natural units."""
        self.k.for_(self.k.warp_index(), rows, WARPS, lambda row: self._merge_row(row, out, sink))

    def _merge_row(self, row: Value, out: Value, sink: Callable[[Value], Value] | None) -> None:
        k, at = self.k, self.at(row)[0]

        def end(z: Value) -> Value:
            return k.load(self.ends, (at * self.most + z) * 2, count=2)

        highest = k.for_each(0, self.count, lambda z, m: m.max(end(z)[0]), [k.f32(LOWEST)], scope="warp")
        highest = k.reduce("max", highest, scope="warp")

        def weigh(z: Value, total: Value) -> Value:
            pair = end(z)
            return total + pair[1] * (pair[0] - highest).exp2()

        total = k.reduce("add", k.for_each(0, self.count, weigh, [k.f32(0.0)], scope="warp"), scope="warp")
        if sink is not None:
            total = total + (sink(row) * LOG2E - highest).exp2()
        scale = reciprocal(total)

        def columns(column: Value) -> None:
            def some(first: Value, added: Value) -> Value:
                # Clamped, not conditional: ptxas puts plain loads in front of their uses.
                places = [at * self.most + (first + u).min(self.count - 1) for u in range(UNROLL)]
                maxima = [k.load(self.ends, place * 2) for place in places]
                parts = [k.load(self.sums, place * self.dim + column, count=4) for place in places]
                for u, (maximum, part) in enumerate(zip(maxima, parts, strict=True)):
                    added = added + part * select(first + u < self.count, (maximum - highest).exp2(), 0.0)
                return added

            added = k.for_(0, self.count, UNROLL, some, [k.zero(t.vector(4, t.f32()))])
            k.store((added * scale).to(self.dtype), out, at * self.dim + column)

        k.for_each(0, self.dim, columns, vector=4, scope="warp")
