"""Paged attention of ragged rows on mma.sync, one block a tile: prefill and chunked prefill.

Threads:    4 warps; each multiplies 16 of the 64 rows of the tile, all of them copy
Rings:      keys, values: one page of one KV head each
Timeline:   find the sequence and the rows of this tile, stage the queries, copy K of the first page;
            for each page j: copy V(j); S = Q K(j)^T; copy K(j+1); softmax of S to P; O += P V(j)

So V(j) travels during S, and K(j+1) during the softmax and O. One stage each leaves room for two blocks
or more on a multiprocessor, whose multiplies fill each other's waits. Row y of the grid is a tile
(attention_find.py); blocks past the last tile end at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..builder import KernelBuilder, Value, select
from ..builder import types as t
from ..gpu.attention_find import find_tile, most_tiles
from ..gpu.attention_tile import ROWS, AttentionTile
from ..gpu.body import pointer
from ..gpu.softmax import Softmax
from ..kernel import Argument, Expression, UnsupportedKernel

THREADS = 128
QUERY_REGISTERS = 128
"""Head dimension up to which a warp keeps its queries in registers."""


class Attention(AttentionTile):
    """The kernel being built; `attention_decode.py` extends it by splits."""

    def __init__(self, kernel_op: Any, suffix: str = ""):
        super().__init__(kernel_op, ROWS)
        # Says to ptxas that registers are there: it would spill for the sake of more blocks.
        blocks = 2 if self.dim <= QUERY_REGISTERS else 1
        self.k = KernelBuilder(self.body.name + suffix, threads=THREADS, pdl=True, min_blocks=blocks)
        self.queries_tile = t.smem((ROWS, self.dim), self.dtype, self.swizzle)

    def _check(self) -> None:
        kv, name = self.kv, self.body.name
        if kv.head_dim != kv.v_head_dim or kv.head_dim % 16 or not 16 <= kv.head_dim <= 256:
            raise UnsupportedKernel(
                f"@{name}: expected equal key and value dimensions in steps of 16 up to 256, found {kv}"
            )
        self._check_pages()

    # -- the kernel ------------------------------------------------------------------------

    def build(self) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
        k = self.k
        ids, cache = t.ptr(t.i32()), t.ptr(self.kv.element)
        (self.q, self.out, self.k_cache, self.v_cache, starts, lengths, self.table, sequences, *rest) = k.arguments(
            q=pointer(self.query),
            out=t.ptr(self.dtype),
            k=cache,
            v=cache,
            starts=ids,
            lengths=ids,
            table=ids,
            sequences=t.i32(),
            tokens=t.i32(),
            width=t.i32(),
            **self.extra_types(),
        )
        tokens, self.width, *more = rest
        self.extra = dict(zip(self.extra_types(), more, strict=True))
        with k.body():
            self.keys = k.ring(1, self.stage)
            self.values = k.ring(1, self.stage)
            self.q_tile = k.shared(self.queries_tile)
            k.pdl_launch()
            self.head = k.program_id("x")
            sequence, tile = find_tile(k, starts, sequences, tokens, group=self.group, rows=ROWS)
            exists = sequence < sequences
            self.sequence = select(exists, sequence, 0)
            self.first_row = k.load(starts, self.sequence)
            self.q_len = k.load(starts, self.sequence + 1) - self.first_row
            self.kv_len = k.load(lengths, self.sequence)
            self.base = tile * ROWS
            # A padding sequence may have tokens and no length: no block works on it.
            self.active = exists & (self.kv_len >= self.q_len)
            self.first_page, self.last_page = self.pages(k)
            k.pdl_wait()
            with k.if_(self.works):
                self._work()
        return k, self._grid(), self._arguments()

    @property
    def works(self) -> Value:
        """Whether there is anything for this block to do."""
        return self.active

    def _grid(self) -> tuple[Expression, ...]:
        return self.kv.heads, most_tiles(self.group, ROWS), 1

    def _arguments(self) -> list[Argument]:
        body = self.body
        return [
            body.operand(self.query),
            {"result": 0},
            body.operand(self.kv_operand, "k"),
            body.operand(self.kv_operand, "v"),
            body.operand(self.batch, "query_start"),
            body.operand(self.batch, "kv_len"),
            body.operand(self.batch, "block_table"),
            {"i32": "S"},
            {"i32": "T"},
            {"i32": "B"},
            *(body.operand(v) for _, v in self.extra_operands()),
        ]

    def _work(self) -> None:
        k = self.k
        self._copy_page(self.keys, self.k_cache, self.first_page)
        self.copy_queries(k, self.q_tile)
        queries = t.frag((ROWS, self.dim), self.dtype, "operand_a")
        self.own_queries = k.load_matrix(self.q_tile, queries) if self.dim <= QUERY_REGISTERS else None
        softmax = self.softmax(k, self.extra)

        def page(masked: bool) -> Callable[..., tuple[Value, ...]]:
            def step(i: Value, out: Value, *state: Value) -> tuple[Value, ...]:
                self._copy_page(self.values, self.v_cache, i)
                raw = self._scores(k.acquire(self.keys, [self.stage]))
                k.release(self.keys)
                self._copy_page(self.keys, self.k_cache, i + 1)
                p, maximum, total, scale, *_ = softmax.step(raw, (k.i32(0), i * self.kv.block), *state, masked=masked)
                out = k.map([out, scale], [t.f32(), t.f32()], lambda o, f, r, c: o * f, [self.output])
                out = k.mma([p], k.acquire(self.values, [self.stage]), [out], transpose_b=True)
                k.release(self.values)
                return out, maximum, total

            return step

        carried = [k.fill(k.f32(0.0), self.output), *softmax.start()]
        first = self.first_page
        if self.window is None:
            # Pages that every row of the tile sees whole need no mask: all but the diagonal.
            whole = (self.kv_len - self.q_len + self.base // self.group + 1) // self.kv.block
            whole = whole.max(first).min(self.last_page)
            carried = k.for_(first, whole, 1, page(masked=False), carried)
            first = whole
        out, maximum, total = k.for_(first, self.last_page, 1, page(masked=True), carried)
        # The page past the last one was copied too, as zeros.
        k.acquire(self.keys, [self.stage])
        k.release(self.keys)
        self._finish(softmax, out, maximum, total)

    def _copy_page(self, ring: Value, cache: Value, page: Value) -> None:
        """Copies a page of the sequence, zeros past the sequence's end."""
        k, size = self.k, self.kv.block
        block = k.load(self.table, self.sequence * self.width + page.min(self.last_page - 1))
        row = (block * self.kv.heads + self.head) * size
        present = select(page < self.last_page, (self.kv_len - page * size).min(size), 0)
        with k.produce(ring, [self.stage]) as (into,):
            k.copy_async(cache, (row, 0), into, rows=row + present, columns=self.dim)

    def _scores(self, keys: Value) -> Value:
        """S = Q K^T for one page; queries that do not stay in registers are read some columns at a time."""
        k = self.k
        scores = k.fill(k.f32(0.0), self.scores)
        if self.own_queries is not None:
            return k.mma([self.own_queries], keys, [scores])
        slab = self.swizzle // 2
        q_slab = t.smem((ROWS, slab), self.dtype, self.swizzle, slab_rows=ROWS)
        k_slab = t.smem((self.kv.block, slab), self.dtype, self.swizzle, slab_rows=self.kv.block)
        for c in range(0, self.dim, slab):
            q = k.load_matrix(k.slice(self.q_tile, [0, c], q_slab), t.frag((ROWS, slab), self.dtype, "operand_a"))
            scores = k.mma([q], k.slice(keys, [0, c], k_slab), [scores])
        return scores

    def _finish(self, softmax: Softmax, out: Value, maximum: Value, total: Value) -> None:
        self._store(out, softmax.finish(maximum, total, self.k.i32(0)))

    def _store(self, out: Value, total: Value) -> None:
        """Divides by the total and stores, through the tile of the queries: 16 bytes a thread."""
        k, chunks = self.k, self.dim // 8
        final = k.map([out, self.inverse(k, total)], [t.f32(), t.f32()], lambda o, s, r, c: o * s, [self.output])
        k.barrier()
        k.epilogue([final], [t.vector(2, t.f32())], lambda v, r, c: k.store(v.to(self.dtype), self.q_tile, r, c))
        k.barrier()

        def copy(i: Value) -> None:
            row, column = i // chunks, (i % chunks) * 8
            token, head = self.row(row)
            at = ((self.first_row + token) * self.heads + head) * self.dim + column
            k.store(k.load(self.q_tile, row, column, count=8), self.out, at, condition=token < self.q_len)

        k.for_each(0, ROWS * chunks, copy)


def build(kernel_op: Any) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: the KV heads by an upper bound of the tiles."""
    return Attention(kernel_op).build()
