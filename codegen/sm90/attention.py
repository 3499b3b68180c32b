"""Paged attention of ragged rows, one block a tile: prefill and chunked prefill.

Roles:      math (1 or 2 warpgroups of 64 rows) | load (1 thread)
Rings:      keys, values: load -> math; a stage is the pages of one step, of one KV head
Timeline:   all:  find the sequence and the rows of this tile (attention_find.py)
            load: for each step: keys.produce, values.produce; waits for the kernel before only where a
                  page has tokens of this step
            math: stage the queries; S = Q K^T of the first step, softmax to P; for each step j after it:
                  start S = Q K(j)^T and O += P V(j-1), mask and softmax S while the latter runs; last
                  O += P V; store O

`attention_decode.py` and `attention_walk.py` split the keys of a tile. Floor: the products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..builder import KernelBuilder, Value, select
from ..builder import types as t
from ..gpu.attention_find import find_tile, most_tiles
from ..gpu.attention_tile import ROWS, SLAB, AttentionTile
from ..gpu.body import pointer
from ..gpu.softmax import Softmax
from ..kernel import Argument, Expression


@dataclass(frozen=True)
class Config:
    """Warpgroups of 64 rows; stages of each ring; blocks a multiprocessor; pages a step; where the
    queries are; registers of a math and of a load thread, which one warpgroup does without."""

    groups: int = 1
    stages: int = 2
    blocks: int = 1
    step_pages: int = 1
    queries_in_registers: bool = False
    regs: tuple[int | None, int | None] = (None, None)

    @property
    def rows(self) -> int:
        return self.groups * ROWS

    @property
    def threads(self) -> int:
        # With budgets the loader takes a whole warpgroup, because setmaxnreg does.
        return 128 * self.groups + (32 if self.groups == 1 else 128)


def choose(head_dim: int) -> Config:
    """128 keys a step and queries in registers where both fit; budgets that leave no spills."""
    few = head_dim <= 128
    return Config(groups=2, step_pages=2 if few else 1, queries_in_registers=few, regs=(240, 24))


class Attention(AttentionTile):
    """The kernel being built; `attention_decode.py` extends it by splits."""

    def __init__(self, kernel_op: Any, config: Config, suffix: str = ""):
        super().__init__(kernel_op, config.rows, config.step_pages)
        self.config = config
        name = self.body.name + suffix
        # ptxas heeds setmaxnreg only when it knows the registers at entry.
        self.k = KernelBuilder(name, threads=config.threads, pdl=True, min_blocks=config.blocks)

    # -- the kernel ------------------------------------------------------------------------

    def build(self) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
        k = self.k
        box = (1, 1, self.kv.block, SLAB)
        kv_map = t.tensor_map(box, self.kv.element)
        # The host writes the batch before the step: reading it need not wait.
        ids = t.ptr(t.i32(), constant=True)
        (self.q, self.out, self.k_map, self.v_map, self.starts, self.lengths, self.table) = k.arguments(
            q=pointer(self.query), out=t.ptr(self.dtype), k=kv_map, v=kv_map, starts=ids, lengths=ids, table=ids
        )
        (self.sequences, self.tokens, self.width, *more) = k.arguments(
            sequences=t.i32(), tokens=t.i32(), width=t.i32(), **self.extra_types()
        )
        self.extra = dict(zip(self.extra_types(), more, strict=True))
        with k.body():
            self.keys = k.ring(self.config.stages, self.stage)
            self.values = k.ring(self.config.stages, self.stage)
            self.q_tile = k.shared(t.smem((self.config.rows, self.dim), self.dtype, 128))
            self._work()
        return k, self._grid(), self._arguments()

    def _work(self) -> None:
        """The block's one tile."""
        k = self.k
        self.head = k.program_id("x")
        sequence, tile = find_tile(k, self.starts, self.sequences, self.tokens, group=self.group, rows=self.config.rows)
        # Branches and loops that are known to be uniform keep stages and descriptors in uniform registers.
        sequence, tile = k.uniform(sequence), k.uniform(tile)
        exists = sequence < self.sequences
        self._enter(select(exists, sequence, 0), tile)
        self.q_len, self.kv_len = k.uniform(self.q_len), k.uniform(self.kv_len)
        # A padding sequence may have tokens and no length: no block works on it.
        self.active = exists & (self.kv_len >= self.q_len)
        self.first_page, self.last_page = (k.uniform(page) for page in self.pages(k))
        k.pdl_launch()
        # The warpgroups first: they start at a warpgroup's warp, and the loader follows.
        math_regs, load_regs = self.config.regs
        with k.role("math", warps=4 * self.config.groups, regs=math_regs):
            k.pdl_wait()
            with k.if_(self.works):
                self._math()
        with k.role("load", warps=1, regs=load_regs, elected=True), k.if_(self.works):
            self._load()

    @property
    def works(self) -> Value:
        """Whether there is anything for this block to do."""
        return self.active

    def _enter(self, sequence: Value, tile: Value) -> None:
        """Makes this tile of the sequence the one that rows and pages are of."""
        k = self.k
        self.sequence = sequence
        self.first_row = k.load(self.starts, sequence)
        self.q_len = k.load(self.starts, sequence + 1) - self.first_row
        self.kv_len = k.load(self.lengths, sequence)
        self.base = tile * self.config.rows

    def _grid(self) -> tuple[Expression, ...]:
        return self.kv.heads, most_tiles(self.group, self.config.rows), 1

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
            {"i32": "T"},
            {"i32": "B"},
            *(body.operand(v) for _, v in self.extra_operands()),
        ]

    def _steps(self) -> tuple[Value, Value]:
        """Steps [first, last) over the pages."""
        pages = self.config.step_pages
        return self.first_page // pages, (self.last_page + (pages - 1)) // pages

    def _load(self) -> None:
        k = self.k
        row = self.sequence * self.width
        fresh = (self.kv_len - self.q_len) // self.kv.block

        def step(i: Value) -> None:
            # The last step may lack pages: any will do for them, as no row sees their keys.
            first = i * self.config.step_pages
            pages = [(first + n).min(self.last_page - 1) for n in range(self.config.step_pages)]
            blocks = [k.load(self.table, row + page) for page in pages]
            # Nobody writes older pages during a step.
            with k.if_(pages[-1] >= fresh):
                k.pdl_wait()
            with k.produce(self.keys, [self.stage]) as (keys,):
                self.load_pages(k, self.k_map, blocks, keys)
            with k.produce(self.values, [self.stage]) as (values,):
                self.load_pages(k, self.v_map, blocks, values)

        k.for_(*self._steps(), 1, step)

    def _math(self) -> None:
        k = self.k
        self.first_own = k.warpgroup_index() * ROWS
        self.own_queries = self._stage_queries()
        softmax = self.softmax(k, self.extra)
        first, last = self._steps()
        raw = k.wgmma_wait([self._scores(k.acquire(self.keys, [self.stage]))], [self.scores])
        k.release(self.keys)
        p, *state, _, _ = softmax.step(raw, self._corner(first), *softmax.start(), masked=True)

        def step(masked: bool) -> Callable[..., tuple[Value, ...]]:
            def body(i: Value, out: Value, p: Value, *state: Value) -> tuple[Value, ...]:
                keys, values = k.acquire(self.keys, [self.stage]), k.acquire(self.values, [self.stage])
                if masked:
                    self.clear_tail(k, values, (i - 1) * self.span)
                scores = self._scores(keys)
                product = k.wgmma(p, values, out, self.output_acc, transpose_b=True)
                raw, product = k.wgmma_wait([scores, product], [self.scores, self.output_acc], pending=1)
                k.release(self.keys)
                p, *after, scale, shift = softmax.step(raw, self._corner(i), *state, masked=masked)
                # ptxas would move the exponentials behind this wait; they run beside the product.
                k.pin(after[-1])
                out = k.wgmma_wait([product], [self.output])
                k.release(self.values)
                return self.rescale(k, out, scale, shift), p, *after

            return body

        carried = [k.fill(k.f32(0.0), self.output), p, *state]
        second = first + 1
        if self.window is None:
            # Keys that every row of the tile sees need no mask: all but those at the diagonal.
            whole = ((self.kv_len - self.q_len + self.base // self.group + 1) // self.span).max(second)
            whole = whole.min(last)
            carried = k.for_(second, whole, 1, step(masked=False), carried)
            second = whole
        out, p, maximum, total = k.for_(second, last, 1, step(masked=True), carried)
        values = k.acquire(self.values, [self.stage])
        self.clear_tail(k, values, (last - 1) * self.span)
        out = k.wgmma_wait([k.wgmma(p, values, out, self.output_acc, transpose_b=True)], [self.output])
        k.release(self.values)
        self._finish(softmax, out, maximum, total)

    def _finish(self, softmax: Softmax, out: Value, maximum: Value, total: Value) -> None:
        self._store(out, softmax.finish(maximum, total, self.first_own))

    def _corner(self, step: Value) -> tuple[Value, Value]:
        """(first row of the warpgroup, position of the step's first key)."""
        return self.first_own, step * self.span

    def _stage_queries(self) -> Value:
        """The warpgroup's queries, in shared memory or registers."""
        k = self.k
        self.copy_queries(k, self.q_tile)
        own = t.smem((ROWS, self.dim), self.dtype, 128, slab_rows=self.config.rows)
        tile = self.q_tile if self.config.groups == 1 else k.warpgroup_slice(self.q_tile, ROWS, own)
        if not self.config.queries_in_registers:
            return tile
        return k.load_matrix(tile, t.frag((ROWS, self.dim), self.dtype, "operand_a"))

    def _scores(self, keys: Value) -> Value:
        """Starts S = Q K^T."""
        k = self.k
        return k.wgmma(self.own_queries, keys, k.zero_acc(self.scores_acc), self.scores_acc)

    def _store(self, out: Value, total: Value) -> None:
        k = self.k
        final = k.map([out, self.inverse(k, total)], [t.f32(), t.f32()], lambda o, s, r, c: o * s, [self.output])

        def store(v: Value, row: Value, column: Value) -> None:
            token, head = self.row(row)
            at = ((self.first_row + token) * self.heads + head) * self.dim + column
            inside = (token < self.q_len) & self.active
            k.store(v.to(self.dtype), self.out, at, condition=inside)

        k.epilogue([final], [t.vector(2, t.f32())], store, at=(self.first_own, 0))


def build(kernel_op: Any, config: Config) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: the KV heads by an upper bound of the tiles."""
    return Attention(kernel_op, config).build()
