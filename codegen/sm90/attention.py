"""Paged attention of ragged rows, one block a tile: prefill and chunked prefill.

Roles:      math (1 or 2 warpgroups of 64 rows) | load (1 thread)
Rings:      keys, values: load -> math; a stage is one page of one KV head
Timeline:   all:  find the sequence and the rows of this tile
            load: for each page, first to last: keys.produce, values.produce
            math: stage the queries; S = Q K^T on the first page, softmax to P; for each page j
                  after it: start S = Q K(j)^T and O += P V(j-1), mask and softmax S while the
                  latter runs; last O += P V

Row y of the grid, from the last, counts over the sequences: sequence s has
ceil(q_len[s] * group / rows) tiles; the grid is an upper bound, and blocks past the last tile work
on one page of sequence 0 and store nothing, so that there always is a first page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..builder import KernelBuilder, Value, select
from ..builder import types as t
from ..gpu.attention_tile import ROWS, SLAB, AttentionTile
from ..gpu.body import pointer
from ..gpu.softmax import Softmax
from ..kernel import Argument, Expression, ceildiv, mul


@dataclass(frozen=True)
class Config:
    """Warpgroups of 64 rows, and stages of each ring.

    One warpgroup suits decoding (`attention_decode.py`); two share the pages of a prefill.
    """

    groups: int = 1
    stages: int = 2

    @property
    def rows(self) -> int:
        return self.groups * ROWS

    @property
    def regs(self) -> tuple[int | None, int | None]:
        """Registers of a math and of a load thread; one warpgroup needs no budget."""
        return (None, None) if self.groups == 1 else (232, 40)

    @property
    def min_blocks(self) -> int | None:
        # ptxas heeds setmaxnreg only when it knows the registers at entry.
        return None if self.groups == 1 else 1

    @property
    def threads(self) -> int:
        # With budgets the loader takes a whole warpgroup, because setmaxnreg does.
        return 128 * self.groups + (32 if self.groups == 1 else 128)


DEFAULT = Config(groups=2)


class Attention(AttentionTile):
    """The kernel being built; `attention_decode.py` extends it by splits."""

    def __init__(self, kernel_op: Any, config: Config, suffix: str = ""):
        super().__init__(kernel_op, config.rows)
        self.config = config
        name = self.body.name + suffix
        self.k = KernelBuilder(name, threads=config.threads, pdl=True, min_blocks=config.min_blocks)

    # -- the kernel ------------------------------------------------------------------------

    def build(self) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
        k = self.k
        box = (1, 1, self.kv.block, SLAB)
        kv_map = t.tensor_map(box, self.kv.element)
        ids = t.ptr(t.i32())
        (self.q, self.out, self.k_map, self.v_map, starts, lengths, table, sequences, *rest) = k.arguments(
            q=pointer(self.query),
            out=t.ptr(self.dtype),
            k=kv_map,
            v=kv_map,
            starts=ids,
            lengths=ids,
            table=ids,
            sequences=t.i32(),
            tokens=t.i32(),
            width=t.i32(),
            **self.extra_types(),
        )
        tokens, width, *more = rest
        self.extra = dict(zip(self.extra_types(), more, strict=True))
        with k.body():
            self.keys = k.ring(self.config.stages, self.page)
            self.values = k.ring(self.config.stages, self.page)
            self.q_tile = k.shared(t.smem((self.config.rows, self.dim), self.dtype, 128))
            self.head = k.program_id("x")
            sequence, tile = self._find(starts, sequences, tokens)
            self.active = sequence < sequences
            sequence = select(self.active, sequence, 0)
            self.table, self.width, self.sequence = table, width, sequence
            self.first_row = k.load(starts, sequence)
            self.q_len = k.load(starts, sequence + 1) - self.first_row
            self.kv_len = k.load(lengths, sequence)
            self.base = tile * self.config.rows
            self.first_page, self.last_page = self.pages(k)
            # The host writes the batch before the step: finding the tile need not wait.
            k.pdl_launch()
            k.pdl_wait()
            # The warpgroup first: it starts at a warpgroup's warp, and the loader follows.
            math_regs, load_regs = self.config.regs
            with k.role("math", warps=4 * self.config.groups, regs=math_regs):
                self._math()
            with k.role("load", warps=1, regs=load_regs, elected=True):
                self._load()
        return k, self._grid(), self._arguments()

    def _grid(self) -> tuple[Expression, ...]:
        tiles: Expression = ["add", ceildiv(mul("T", self.group), self.config.rows), "S"]
        # A sequence has a token or more, so it has no more tiles than tokens while a token fits a tile.
        return (self.kv.heads, ["min", "T", tiles] if self.group <= self.config.rows else tiles, 1)

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

    def _find(self, starts: Value, sequences: Value, tokens: Value) -> tuple[Value, Value]:
        """(sequence, tile in it) of this block; sequence = S where there is no tile left.

        With as many tokens as sequences each has one tile; otherwise the block counts tiles.
        """
        k = self.k

        def tiles(s: Value) -> Value:
            rows = (k.load(starts, s + 1) - k.load(starts, s)) * self.group
            return (rows + (self.config.rows - 1)) // self.config.rows

        # Later tiles of a causal sequence are longer: they begin first.
        turn = k.num_programs("y") - 1 - k.program_id("y")

        # A select, not a short-circuit: past the end the clamped load is harmless.
        def further(s: Value, rest: Value) -> Value:
            clamped = s.min(sequences - 1)
            return (s < sequences) & (rest >= tiles(clamped))

        start = [k.i32(0), turn]
        if self.group <= self.config.rows:
            single = tokens.equals(sequences)
            start = [select(single, turn, 0), select(single, k.i32(0), turn)]
        return k.while_(further, lambda s, rest: (s + 1, rest - tiles(s)), start)

    def _load(self) -> None:
        k = self.k
        row = self.sequence * self.width

        def page(i: Value) -> None:
            block = k.load(self.table, row + i)
            with k.produce(self.keys, [self.page]) as (keys,):
                k.tma_load(self.k_map, [block, self.head, 0, 0], keys)
            with k.produce(self.values, [self.page]) as (values,):
                k.tma_load(self.v_map, [block, self.head, 0, 0], values)

        k.for_(self.first_page, self.last_page, 1, page)

    def _math(self) -> None:
        k = self.k
        self.first_own = k.warpgroup_index() * ROWS
        self.own_queries = self._stage_queries()
        softmax = self.softmax(k, self.extra)
        raw = k.wgmma_wait([self._start_scores()], [self.scores])
        k.release(self.keys)
        p, *state, _ = softmax.step(raw, self._corner(self.first_page), *softmax.start(), masked=True)

        def page(masked: bool) -> Callable[..., tuple[Value, ...]]:
            def step(i: Value, out: Value, p: Value, *state: Value) -> tuple[Value, ...]:
                scores = self._start_scores()
                product = self._start_output(p, out, i - 1, whole=not masked)
                raw, product = k.wgmma_wait([scores, product], [self.scores, self.output_acc], pending=1)
                k.release(self.keys)
                p, *after, scale = softmax.step(raw, self._corner(i), *state, masked=masked)
                # ptxas would move the exponentials behind this wait; they run beside the product.
                k.pin(after[-1])
                out = k.wgmma_wait([product], [self.output])
                k.release(self.values)
                out = k.map([out, scale], [t.f32(), t.f32()], lambda o, f, r, c: o * f, [self.output])
                return out, p, *after

            return step

        carried = [k.fill(k.f32(0.0), self.output), p, *state]
        second = self.first_page + 1
        if self.window is None:
            # Pages that every row of the tile sees whole need no mask: all but the diagonal.
            whole = ((self.kv_len - self.q_len + self.base // self.group + 1) // self.kv.block).max(second)
            whole = whole.min(self.last_page)
            carried = k.for_(second, whole, 1, page(masked=False), carried)
            second = whole
        out, p, maximum, total = k.for_(second, self.last_page, 1, page(masked=True), carried)
        out = k.wgmma_wait([self._start_output(p, out, self.last_page - 1)], [self.output])
        k.release(self.values)
        self._finish(softmax, out, maximum, total)

    def _finish(self, softmax: Softmax, out: Value, maximum: Value, total: Value) -> None:
        self._store(out, softmax.finish(maximum, total, self.first_own))

    def _corner(self, page: Value) -> tuple[Value, Value]:
        """(first row of the warpgroup, position of the page's first key)."""
        return self.first_own, page * self.kv.block

    def _stage_queries(self) -> Value:
        """The warpgroup's queries: in registers when they fit."""
        k = self.k
        self.copy_queries(k, self.q_tile)
        own = t.smem((ROWS, self.dim), self.dtype, 128, slab_rows=self.config.rows)
        tile = self.q_tile if self.config.groups == 1 else k.warpgroup_slice(self.q_tile, ROWS, own)
        # One warpgroup leaves room for a second block on the multiprocessor, which is worth more.
        if self.config.groups == 1 or self.dim > 128:
            return tile
        return k.load_matrix(tile, t.frag((ROWS, self.dim), self.dtype, "operand_a"))

    def _start_scores(self) -> Value:
        """Starts S = Q K^T on the next page of keys."""
        k = self.k
        keys = k.acquire(self.keys, [self.page])
        return k.wgmma(self.own_queries, keys, k.zero_acc(self.scores_acc), self.scores_acc)

    def _start_output(self, p: Value, out: Value, page: Value, *, whole: bool = False) -> Value:
        """Starts O += P V on the next page of values, which is page `page` of the sequence; a `whole`
        one lies inside the sequence for sure."""
        k = self.k
        values = k.acquire(self.values, [self.page])
        if not whole:
            self.clear_tail(k, values, page * self.kv.block)
        return k.wgmma(p, values, out, self.output_acc, transpose_b=True)

    def _store(self, out: Value, total: Value) -> None:
        k = self.k
        final = k.map([out, self.inverse(k, total)], [t.f32(), t.f32()], lambda o, s, r, c: o * s, [self.output])

        def store(v: Value, row: Value, column: Value) -> None:
            token, head = self.row(row)
            at = ((self.first_row + token) * self.heads + head) * self.dim + column
            inside = (token < self.q_len) & self.active
            k.store(v.to(self.dtype), self.out, at, condition=inside)

        k.epilogue([final], [t.vector(2, t.f32())], store, at=(self.first_own, 0))


def build(
    kernel_op: Any, config: Config = Config(groups=2)
) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: the KV heads by an upper bound of the tiles."""
    return Attention(kernel_op, config).build()
