"""Paged attention of 65 to 512 tokens: wide decode, small mixed steps. Splits the keys.

Roles:      math (1 warpgroup, 64 rows) | load (1 thread)
Rings:      keys, values: load -> math; a stage is one page of one KV head
Timeline:   all:  sum the costs of the sequences, find this block's items (attention_schedule.py)
            load: for each item, for each page: keys.produce, values.produce; never stops between items
            math: for each item: stage the queries; for each page S = Q K^T, softmax, O += P V;
                  store O where the item is all of its tile, else O, maximum and sum to the workspace

The grid is constant: two blocks a multiprocessor, so that one block's loads hide the other's waits.
`attention_combine.py` adds up the splits. Floor: the bytes of the pages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..builder import KernelBuilder, Value
from ..builder import types as t
from ..chips import HOPPER
from ..gpu.attention_tile import ROWS, SLAB, AttentionTile
from ..gpu.body import pointer
from ..kernel import Argument, Expression
from .attention_schedule import Cut, Schedule, Splitting, table_type


@dataclass(frozen=True)
class Config:
    """Stages of each ring; blocks a multiprocessor; how sequences are split."""

    splitting: Splitting
    max_tokens: int
    stages: int = 2
    blocks: int = 2


def choose(head_dim: int, splitting: Splitting, max_tokens: int) -> Config:
    """Two blocks where their rings fit; head dims 192 and 256 fill a multiprocessor with one."""
    if head_dim <= 128:
        return Config(splitting, max_tokens, stages=4 if head_dim == 64 else 2)
    return Config(splitting, max_tokens, blocks=1)


def ends_offset(tile: AttentionTile, config: Config) -> int:
    """Byte offset in the workspace of the ends f32 [splits, T, heads, 2], behind the parts f32 [.., dim]."""
    rows = config.splitting.max_splits * config.max_tokens * tile.heads
    return -(-rows * tile.dim * 4 // 256) * 256


def workspace_bytes(kernel_op: Any, config: Config) -> int:
    tile = AttentionTile(kernel_op, ROWS)
    rows = config.splitting.max_splits * config.max_tokens * tile.heads
    return ends_offset(tile, config) + -(-rows * 8 // 256) * 256


def build(kernel_op: Any, config: Config, suffix: str) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: constant. The workspace holds the parts of tiles that were split."""
    return _Kernel(kernel_op, config, suffix).build()


class _Kernel(AttentionTile):
    def __init__(self, kernel_op: Any, config: Config, suffix: str):
        super().__init__(kernel_op, ROWS)
        self.config = config
        # One block with budgets would need a warpgroup for the loader: none, registers suffice.
        self.k = KernelBuilder(self.body.name + suffix, threads=160, pdl=True, min_blocks=config.blocks)

    def build(self) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
        k = self.k
        kv_map = t.tensor_map((1, 1, self.kv.block, SLAB), self.kv.element)
        ids, f32s = t.ptr(t.i32(), constant=True), t.ptr(t.f32())
        (self.q, self.out, self.k_map, self.v_map, starts, lengths, self.table, sequences, self.width) = k.arguments(
            q=pointer(self.query), out=t.ptr(self.dtype), k=kv_map, v=kv_map,
            starts=ids, lengths=ids, table=ids, sequences=t.i32(), width=t.i32(),
        )  # fmt: skip
        self.tokens, self.part, self.ends = k.arguments(tokens=t.i32(), part=f32s, ends=f32s)
        self.extra = dict(zip(self.extra_types(), k.arguments(**self.extra_types()), strict=True))
        self.starts, self.lengths = starts, lengths
        self.schedule = schedule(self, k, starts, lengths, sequences, self.config.splitting)
        with k.body():
            self.keys = k.ring(self.config.stages, self.page)
            self.values = k.ring(self.config.stages, self.page)
            self.q_tile = k.shared(t.smem((ROWS, self.dim), self.dtype, 128))
            # The host writes the batch before the step, so the schedule need not wait.
            share = self.schedule.share(k.shared(table_type()))
            k.pdl_launch()
            k.pdl_wait()
            with k.role("math", warps=4):
                self._items(share, self._math)
            with k.role("load", warps=1, elected=True):
                self._items(share, self._load)
        return k, (HOPPER.multiprocessors * self.config.blocks, 1, 1), self._arguments()

    def _arguments(self) -> list[Argument]:
        body = self.body
        return [
            body.operand(self.query),
            {"result": 0},
            self.kv.tensor_map(body.operand(self.kv_operand, "k"), SLAB),
            self.kv.tensor_map(body.operand(self.kv_operand, "v"), SLAB),
            body.operand(self.batch, "query_start"),
            body.operand(self.batch, "kv_len"),
            body.operand(self.batch, "block_table"),
            {"i32": "S"},
            {"i32": "B"},
            {"i32": "T"},
            {"workspace": 0},
            {"workspace": ends_offset(self, self.config)},
            *(body.operand(v) for _, v in self.extra_operands()),
        ]

    def _items(self, share: tuple[Value, Value, Value], role: Callable[[Value, Value, Value], None]) -> None:
        """Runs `role(first page, last page, split)` on each item of the block."""
        k = self.k

        def one(_: Value, sequence: Value, item: Value) -> tuple[Value, Value]:
            sequence, item = self.schedule.settle(sequence, item)
            cut = self._enter(sequence, item)
            rest = item // self.kv.heads
            split, self.split_count = rest % cut.splits, cut.splits
            first, last = self.pages(k)
            # Empty where a tile sees fewer pages than the sequence's last tile does.
            begin = (first + split * cut.pages).min(last)
            role(begin, (begin + cut.pages).min(last), split)
            return sequence, item + 1

        sequence, item, count = share
        k.for_(0, count, 1, one, [sequence, item])

    def _enter(self, sequence: Value, item: Value) -> Cut:
        """Makes the item's tile the one that rows and pages are of."""
        k = self.k
        cut = self.schedule.cut(sequence)
        self.sequence = sequence
        self.first_row = k.load(self.starts, sequence)
        self.q_len = k.load(self.starts, sequence + 1) - self.first_row
        self.kv_len = k.load(self.lengths, sequence)
        self.active = k.i32(0).equals(0)
        self.head = item % self.kv.heads
        self.base = (item // self.kv.heads // cut.splits) * ROWS
        return cut

    def _load(self, first: Value, last: Value, _: Value) -> None:
        k = self.k
        row = self.sequence * self.width

        def page(i: Value, block: Value) -> Value:
            # Asked for a page ahead, so that its latency passes while the stage is awaited.
            following = k.load(self.table, row + (i + 1).min(last - 1))
            for ring, map_ in ((self.keys, self.k_map), (self.values, self.v_map)):
                with k.produce(ring, [self.page]) as (tile,):
                    k.tma_load(map_, [block, self.head, 0, 0], tile)
            return following

        k.for_(first, last, 1, page, [k.load(self.table, row + first.min(last - 1))])

    def _math(self, first: Value, last: Value, split: Value) -> None:
        k = self.k
        # All warps are done with the queries of the item before.
        k.barrier("role")
        self.copy_queries(k, self.q_tile)
        softmax = self.softmax(k, self.extra)

        def page(masked: bool) -> Callable[..., tuple[Value, ...]]:
            def step(i: Value, out: Value, *state: Value) -> tuple[Value, ...]:
                keys = k.acquire(self.keys, [self.page])
                scores = k.wgmma(self.q_tile, keys, k.zero_acc(self.scores_acc), self.scores_acc)
                raw = k.wgmma_wait([scores], [self.scores])
                k.release(self.keys)
                at = (k.i32(0), i * self.kv.block)
                p, *after, scale = softmax.step(raw, at, *state, masked=masked)
                out = k.map([out, scale], [t.f32(), t.f32()], lambda o, f, r, c: o * f, [self.output])
                values = k.acquire(self.values, [self.page])
                if masked:
                    self.clear_tail(k, values, i * self.kv.block)
                out = k.wgmma(p, values, out, self.output_acc, transpose_b=True)
                out = k.wgmma_wait([out], [self.output])
                k.release(self.values)
                return out, *after

            return step

        carried = [k.fill(k.f32(0.0), self.output), *softmax.start()]
        whole = first
        if self.window is None:
            # Pages that every row of the tile sees whole need no mask.
            whole = ((self.kv_len - self.q_len + self.base // self.group + 1) // self.kv.block).max(first).min(last)
            carried = k.for_(first, whole, 1, page(masked=False), carried)
        out, maximum, total = k.for_(whole, last, 1, page(masked=True), carried)
        total = softmax.finish(maximum, total, k.i32(0), counts=split.equals(0))
        with k.if_(self.split_count.equals(1)):
            self._store(out, total)
        with k.if_(self.split_count > 1):
            self._store_part(out, maximum, total, split, softmax.factor)

    def _inside(self, row: Value) -> tuple[Value, Value]:
        """(row of the packed [T, heads], whether it exists) of a row of the tile."""
        token, head = self.row(row)
        return (self.first_row + token) * self.heads + head, token < self.q_len

    def _store(self, out: Value, total: Value) -> None:
        k = self.k
        final = k.map([out, self.inverse(k, total)], [t.f32(), t.f32()], lambda o, s, r, c: o * s, [self.output])

        def store(v: Value, row: Value, column: Value) -> None:
            packed, inside = self._inside(row)
            k.store(v.to(self.dtype), self.out, packed * self.dim + column, condition=inside)

        k.epilogue([final], [t.vector(2, t.f32())], store, at=(k.i32(0), 0))

    def _store_part(self, out: Value, maximum: Value, total: Value, split: Value, factor: float) -> None:
        """O, not yet divided, to part [splits, T, heads, dim]; (maximum in powers of two, sum) to ends."""
        k = self.k
        slab = split * self.tokens * self.heads

        def store(v: Value, row: Value, column: Value) -> None:
            packed, inside = self._inside(row)
            k.store(v, self.part, (slab + packed) * self.dim + column, condition=inside)

        def store_ends(m: Value, s: Value, row: Value, _: Value) -> None:
            packed, inside = self._inside(row)
            k.store(m * factor, self.ends, (slab + packed) * 2, condition=inside)
            k.store(s, self.ends, (slab + packed) * 2 + 1, condition=inside)

        k.epilogue([out], [t.vector(2, t.f32())], store, at=(k.i32(0), 0))
        k.epilogue([maximum, total], [t.f32(), t.f32()], store_ends, at=(k.i32(0), 0))


def schedule(
    tile: AttentionTile, k: KernelBuilder, starts: Value, lengths: Value, sequences: Value, splitting: Splitting
) -> Schedule:
    """The schedule that the split kernel and its combine kernel agree on."""
    return Schedule(
        k, starts, lengths, sequences, splitting,
        rows=ROWS, group=tile.group, block=tile.kv.block, kv_heads=tile.kv.heads, window=tile.window,
    )  # fmt: skip
