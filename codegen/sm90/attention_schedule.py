"""How split attention cuts sequences into items, and deals the items to blocks: on the device.

A sequence has ceil(q_len * group / rows) tiles a KV head. The pages of a tile are cut into splits whose
number depends on the sequence's own lengths alone, so that its bits do not depend on its neighbours.
An item is one split of one tile of one KV head. Its cost is its pages plus one for its ends; each block
takes the items that begin in its equal share of the total cost. All sizes come from the batch arrays,
so one captured graph with a constant grid serves every step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir

from ..builder import KernelBuilder, Value, select
from ..builder import types as t

MAX_SEQUENCES = 512
"""Sequences of a step that the table in shared memory holds."""


@dataclass(frozen=True)
class Cut:
    """One sequence cut into items: `tiles` x `splits` x KV heads of them, of at most `pages` pages each."""

    tiles: Value
    splits: Value
    pages: Value
    items: Value

    @property
    def cost(self) -> Value:
        return self.pages + 1


def ceil_divide(a: Value, b: Value | int) -> Value:
    return (a + (b - 1)) // b


@dataclass(frozen=True)
class Schedule:
    """The cuts of a batch: `starts` i32[S + 1] and `lengths` i32[S] in global memory.

    Splits have `least` pages or more; all tiles of a sequence and KV head have at most `most` splits.
    """

    k: KernelBuilder
    starts: Value
    lengths: Value
    sequences: Value
    least: Value
    most: Value
    rows: int
    group: int
    block: int
    kv_heads: int
    window: int | None

    def cut(self, s: Value) -> Cut:
        k = self.k
        q_len = k.load(self.starts, s + 1) - k.load(self.starts, s)
        kv_len = k.load(self.lengths, s)
        # A padding sequence may have tokens and no length: it has no items.
        tiles = select(kv_len >= q_len, ceil_divide(q_len * self.group, self.rows), 0)
        pages = ceil_divide(kv_len, self.block)
        if self.window is not None:
            # The tokens of a tile and their windows, and a page begun at each end.
            pages = pages.min(-(-(self.window + self.rows) // self.block) + 1)
        most = (self.most // tiles.max(1)).max(1)
        wanted = ceil_divide(pages, self.least).min(most).max(1)
        per_split = ceil_divide(pages, wanted)
        splits = ceil_divide(pages, per_split.max(1)).max(1)
        return Cut(tiles, splits, per_split, tiles * splits * self.kv_heads)

    def share(self, table: Value) -> tuple[Value, Value, Value]:
        """(sequence, item in it, number of items) of this block's share; all threads call it.

        table: !tile.smem<2 x MAX_SEQUENCES x i32>, scratch.
        """
        k = self.k

        def fill(s: Value) -> None:
            cut = self.cut(s)
            k.store(cut.items * cut.cost, table, 0, s)

        k.for_each(0, self.sequences, fill)
        k.barrier()
        side, _ = k.while_(lambda _, d: d < self.sequences, lambda b, d: self._scan(table, b, d), [k.i32(0), k.i32(1)])

        def sum_before(s: Value) -> Value:
            """Cost of the sequences before s."""
            return select(s > 0, k.load(table, side, s.max(1) - 1), 0)

        total = sum_before(self.sequences)
        quota = ceil_divide(total, k.num_programs())
        first = k.program_id() * quota
        end = (first + quota).min(total)
        sequence = self.bisect(lambda s: k.load(table, side, s) <= first, k.i32(0), self.sequences)

        def item(position: Value, s: Value) -> Value:
            """The first item of s that begins at or after the position, which s's items may all precede."""
            cut = self.cut(s)
            before = sum_before(s)
            ahead = select(position > before, position - before, 0)
            return ceil_divide(ahead, cut.cost).min(cut.items)

        last = self.sequences - 1
        start = item(first, sequence.min(last))
        count, _, _ = k.while_(
            lambda n, s, j: (s < self.sequences) & (sum_before(s) < end),
            lambda n, s, j: (n + (item(end, s) - j), s + 1, k.i32(0)),
            [k.i32(0), sequence, start],
        )
        return sequence, start, select(first < end, count, 0)

    def _scan(self, table: Value, side: Value, distance: Value) -> tuple[Value, Value]:
        """One step of the inclusive sum over the table, from one side to the other."""
        k = self.k
        other = 1 - side

        def add(s: Value) -> None:
            below = select(s >= distance, k.load(table, side, select(s >= distance, s - distance, 0)), 0)
            k.store(k.load(table, side, s) + below, table, other, s)

        k.for_each(0, self.sequences, add)
        k.barrier()
        return other, distance * 2

    def bisect(self, goes_before: Callable[[Value], Value], low: Value, high: Value) -> Value:
        """The first sequence in [low, high) for which `goes_before` is false; high where there is none."""
        k = self.k

        def halve(low: Value, high: Value) -> tuple[Value, Value]:
            middle = (low + high) // 2
            before = goes_before(middle)
            return select(before, middle + 1, low), select(before, high, middle)

        low, _ = k.while_(lambda low, high: low < high, halve, [low, high])
        return low

    def settle(self, sequence: Value, item: Value) -> tuple[Value, Value]:
        """Moves an item past the end of its sequence to the next sequence that has one."""

        def past(s: Value, j: Value) -> Value:
            return (s + 1 < self.sequences) & (j >= self.cut(s.min(self.sequences - 1)).items)

        return self.k.while_(past, lambda s, j: (s + 1, self.k.i32(0)), [sequence, item])


def table_type() -> ir.Type:
    return t.smem((2, MAX_SEQUENCES), t.i32())
