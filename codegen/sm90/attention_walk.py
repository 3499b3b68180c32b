"""Paged attention of 65 to 512 tokens: wide decode, small mixed steps. Blocks walk over splits.

Roles, rings: those of attention.py
Timeline:   all:  sum the costs of the sequences, find this block's items (attention_schedule.py)
            load: for each item, for each page: keys.produce, values.produce; never stops between items
            math: for each item what attention.py does for a tile; parts as in attention_decode.py

The grid is constant: a block a split would leave too many blocks without work. Items of 16 pages or more,
since each costs about as much as a page at its ends.
How a tile is split depends on its sequence's own lengths alone. Floor: the bytes of the pages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..builder import KernelBuilder, Value
from ..builder import types as t
from ..chips import HOPPER
from ..gpu.attention_merge import Workspace
from ..gpu.attention_tile import ROWS
from ..kernel import Argument, Expression
from .attention import Config
from .attention_decode import SplitAttention, Splits
from .attention_schedule import Cut, Schedule, ceil_divide, table_type


class _Walk(SplitAttention):
    def _grid(self) -> tuple[Expression, ...]:
        return HOPPER.multiprocessors * self.config.blocks, 1, 1

    def _work(self) -> None:
        k = self.k
        self.flag = k.shared(t.smem((1,), t.i32()))
        self.schedule = Schedule(
            k, self.starts, self.lengths, self.sequences, self.extra["least"], self.extra["most"],
            rows=ROWS, group=self.group, block=self.kv.block, kv_heads=self.kv.heads, window=self.window,
        )  # fmt: skip
        share = self.schedule.share(k.shared(table_type()))
        self.active = k.i32(0).equals(0)
        k.pdl_launch()
        with k.role("math", warps=4):
            k.pdl_wait()
            self._items(share, self._math)
        with k.role("load", warps=1, elected=True):
            self._items(share, self._load)

    def _items(self, share: tuple[Value, Value, Value], role: Callable[[], None]) -> None:
        """Runs the role on each item of the block."""
        k = self.k

        def one(_: Value, sequence: Value, item: Value) -> tuple[Value, Value]:
            sequence, item = self.schedule.settle(sequence, item)
            self._enter_item(self.schedule.cut(sequence), sequence, item)
            # A tile may see fewer pages than the last of its sequence, and so lack splits.
            with k.if_(self.split < self.count):
                role()
            return sequence, item + 1

        sequence, item, count = share
        k.for_(0, count, 1, one, [sequence, item])

    def _enter_item(self, cut: Cut, sequence: Value, item: Value) -> None:
        """Makes the item's pages and tile those that the roles work on."""
        self.head = item % self.kv.heads
        rest = item // self.kv.heads
        self.split = rest % cut.splits
        self._enter(sequence, rest // cut.splits)
        first, last = self.pages(self.k)
        self.count = ceil_divide(last - first, cut.pages)
        self.first_page = first + self.split * cut.pages
        self.last_page = (self.first_page + cut.pages).min(last)

    def _math(self) -> None:
        # All warps are done with the queries of the item before.
        self.k.barrier("role")
        super()._math()


def build(
    kernel_op: Any, config: Config, splits: Splits, workspace: Workspace
) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: constant. At most `splits.most` for all tiles of a sequence and KV head."""
    return _Walk(kernel_op, config, "_walk", splits, workspace).build()
