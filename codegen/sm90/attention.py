"""Paged attention of ragged rows: prefill, chunked prefill and decode in one kernel.

Roles:    load (1 thread) | math (one warpgroup)
Ring kv:  load -> math; a stage is one page of keys and one of values of one KV head
Timeline: all:  find the sequence and the rows of this tile
          load: for each page, first to last: kv.produce
          math: stage the queries; for each page: S = Q K^T, mask, online softmax, O += P V

The 64 rows of a tile are (token, query head of the group) pairs, token-major, so the pages of a
KV head are read once for all its query heads. Tile x of the grid counts over the sequences:
sequence s has ceil(q_len[s] * group / 64) tiles; the grid is an upper bound, and blocks past the
last tile leave at once. Scores are in units of log2; the running maximum starts at a finite value,
so a fully masked row or page contributes exactly zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mlir import ir

from ..builder import KernelBuilder, Value, select
from ..builder import types as t
from ..kernel import Argument, Expression, ceildiv, mul
from . import activations
from .body import Body, UnsupportedKernel, element, f64, pointer, shape
from .kv import KvLayer

ROWS = 64
SLAB = 64
"""Columns of one 128-byte swizzle span."""
LOWEST = -1e30
"""Where the running maximum starts: below every score, yet finite."""


@dataclass(frozen=True)
class Config:
    """Depth of the ring of pages."""

    stages: int = 3


class _Kernel:
    def __init__(self, kernel_op: Any, config: Config):
        self.body = Body(kernel_op)
        self.op = self.body.find("llm.paged_attention")
        operands = list(self.op.operands)
        segments = list(self.op.attributes["operandSegmentSizes"])
        self.query, self.kv_operand, self.batch = operands[:3]
        rest = operands[3:]
        self.sinks = rest.pop(0) if segments[3] else None
        self.alibi = rest.pop(0) if segments[4] else None
        self.kv = KvLayer.of(self.kv_operand)
        self._check()
        self.heads = shape(self.op.results[0])[1] or 0
        self.group = self.heads // self.kv.heads
        self.dim = self.kv.head_dim
        self.dtype = element(self.query)
        page = t.smem((self.kv.block, self.dim), self.kv.element, 128)
        self.slots = [page, page]
        self.config = config
        self.k = KernelBuilder(self.body.name, threads=160, pdl=True)

    def _check(self) -> None:
        kv, name = self.kv, self.body.name
        if kv.head_dim != kv.v_head_dim or kv.head_dim % SLAB or kv.head_dim > 256:
            raise UnsupportedKernel(
                f"@{name}: expected equal key and value dimensions of 64, 128, 192 or 256, found {kv}"
            )
        if kv.block % 16 or not 16 <= kv.block <= 256:
            raise UnsupportedKernel(f"@{name}: expected pages of 16 to 256 tokens, found {kv.block}")
        if element(self.query) != kv.element:
            raise UnsupportedKernel(f"@{name}: expected queries of the cache's type, found {self.query.type} and {kv}")
        if "causal" not in self.op.attributes:
            raise UnsupportedKernel(f"@{name}: attention over a cache is causal")

    # -- the kernel ------------------------------------------------------------------------

    def build(self) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
        k = self.k
        box = (1, 1, self.kv.block, SLAB)
        kv_map = t.tensor_map(box, self.kv.element)
        ids = t.ptr(t.i32())
        extra = {name: pointer(v, weight=True) for name, v in self._extra()}
        (self.q, self.out, self.k_map, self.v_map, starts, lengths, table, sequences, width, *more) = k.arguments(
            q=pointer(self.query),
            out=t.ptr(self.dtype),
            k=kv_map,
            v=kv_map,
            starts=ids,
            lengths=ids,
            table=ids,
            sequences=t.i32(),
            width=t.i32(),
            **extra,
        )
        self.extra = dict(zip((name for name, _ in self._extra()), more, strict=True))
        with k.body():
            k.pdl_wait()
            self.ring = k.ring(self.config.stages, *self.slots)
            self.q_tile = k.shared(t.smem((ROWS, self.dim), self.dtype, 128))
            self.head = k.program_id("y")
            sequence, tile = self._find(starts, sequences)
            self.active = sequence < sequences
            # Blocks past the last tile read sequence 0 and work on no page.
            sequence = select(self.active, sequence, 0)
            self.table, self.width, self.sequence = table, width, sequence
            self.first_row = k.load(starts, sequence)
            self.q_len = k.load(starts, sequence + 1) - self.first_row
            self.kv_len = k.load(lengths, sequence)
            self.base = tile * ROWS
            self.first_page, self.last_page = self._pages()
            # The warpgroup first: it starts at a warpgroup's warp, and the loader follows.
            with k.role("math", warps=4):
                self._math()
            with k.role("load", warps=1, elected=True):
                self._load()
        tiles: Expression = ["add", ceildiv(mul("T", self.group), ROWS), "S"]
        return k, (tiles, self.kv.heads, 1), self._arguments()

    def _extra(self) -> list[tuple[str, ir.Value]]:
        return [(n, v) for n, v in (("sinks", self.sinks), ("alibi", self.alibi)) if v is not None]

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
            *(body.operand(v) for _, v in self._extra()),
        ]

    def _find(self, starts: Value, sequences: Value) -> tuple[Value, Value]:
        """(sequence, tile in it) of this block; sequence = S where there is no tile left."""
        k = self.k

        def tiles(s: Value) -> Value:
            rows = (k.load(starts, s + 1) - k.load(starts, s)) * self.group
            return (rows + (ROWS - 1)) // ROWS

        # A select, not a short-circuit: past the end the clamped load is harmless.
        def further(s: Value, rest: Value) -> Value:
            clamped = s.min(sequences - 1)
            return (s < sequences) & (rest >= tiles(clamped))

        return k.while_(further, lambda s, rest: (s + 1, rest - tiles(s)), [k.i32(0), k.program_id()])

    def _pages(self) -> tuple[Value, Value]:
        """Pages [first, last) that some row of the tile attends to."""
        k, block = self.k, self.kv.block
        offset = self.kv_len - self.q_len
        last_token = ((self.base + (ROWS - 1)) // self.group).min(self.q_len - 1)
        end = (offset + last_token) // block + 1
        last = select(self.active, end, 0)
        if "window" not in self.op.attributes:
            return k.i32(0), last
        window = ir.IntegerAttr(self.op.attributes["window"]).value
        position = offset + self.base // self.group + 1
        return select(self.active & (position > window), (position - window) // block, 0), last

    def _load(self) -> None:
        k = self.k
        row = self.sequence * self.width

        def page(i: Value) -> None:
            block = k.load(self.table, row + i)
            with k.produce(self.ring, self.slots) as (keys, values):
                k.tma_load(self.k_map, [block, self.head, 0, 0], keys)
                k.tma_load(self.v_map, [block, self.head, 0, 0], values)

        k.for_(self.first_page, self.last_page, 1, page)

    def _math(self) -> None:
        k = self.k
        self._stage_queries()
        rows = t.frag((ROWS,), t.f32(), "rows")
        state = [
            k.fill(k.f32(0.0), t.frag((ROWS, self.dim), t.f32())),
            k.fill(k.f32(LOWEST), rows),
            k.fill(k.f32(0.0), rows),
        ]
        out, maximum, total = k.for_(self.first_page, self.last_page, 1, self._page, state)
        total = k.row_reduce("add", total, rows)
        if self.sinks is not None:
            total = self._add_sinks(total, maximum, rows)
        self._store(out, total)
        k.pdl_launch()

    def _stage_queries(self) -> None:
        """The tile's queries into swizzled shared memory; rows past the sequence are zero."""
        k, chunks = self.k, self.dim // 8

        def copy(i: Value) -> None:
            row, column = i // chunks, (i % chunks) * 8
            token, head = self._row(row)
            at = ((self.first_row + token) * self.heads + head) * self.dim + column
            inside = (token < self.q_len) & self.active
            k.store(k.load(self.q, at, count=8, condition=inside), self.q_tile, row, column)

        k.for_each(0, ROWS * chunks, copy)
        k.proxy_fence()
        k.barrier("role")

    def _row(self, row: Value) -> tuple[Value, Value]:
        """(token of the sequence, query head) of a row of the tile."""
        packed = self.base + row
        return packed // self.group, self.head * self.group + packed % self.group

    def _page(self, page: Value, out: Value, maximum: Value, total: Value) -> tuple[Value, Value, Value]:
        """One page: scores, online softmax, and its share of the output."""
        k, block = self.k, self.kv.block
        keys, values = k.acquire(self.ring, self.slots)
        first = page * block
        self._clear_tail(values, first)
        scores_type, rows = t.frag((ROWS, block), t.f32()), t.frag((ROWS,), t.f32(), "rows")
        acc = t.acc(ROWS, block, t.f32())
        started = k.wgmma(self.q_tile, keys, k.zero_acc(acc), acc)
        raw = k.wgmma_wait([started], [scores_type])
        scores = k.map([raw], [t.f32()], self._score, [scores_type], at=(0, first))
        f32 = [t.f32(), t.f32()]
        highest = k.row_reduce("max", scores, rows)
        new = k.map([maximum, highest], f32, lambda a, b, r, c: a.max(b), [rows])
        weights = k.map([scores, new], f32, lambda s, m, r, c: (s - m).exp2(), [scores_type])
        scale = k.map([maximum, new], f32, lambda a, b, r, c: (a - b).exp2(), [rows])
        added = k.row_reduce("add", weights, rows, partial=True)
        total = k.map([total, scale, added], [*f32, t.f32()], lambda s, f, a, r, c: s * f + a, [rows])
        out_type = t.frag((ROWS, self.dim), t.f32())
        out = k.map([out, scale], f32, lambda o, f, r, c: o * f, [out_type])
        probabilities = k.convert(weights, t.frag((ROWS, block), self.kv.element, "operand_a"))
        started = k.wgmma(probabilities, values, out, t.acc(ROWS, self.dim, t.f32()), transpose_b=True)
        out = k.wgmma_wait([started], [out_type])
        k.release(self.ring)
        return out, new, total

    def _clear_tail(self, values: Value, first: Value) -> None:
        """Zeroes the values past the end of the sequence: 0 times garbage could be NaN."""
        k, chunks = self.k, self.dim // 8
        with k.if_(first + self.kv.block > self.kv_len):
            zero = k.zero(t.vector(8, self.kv.element))
            start = (self.kv_len - first) * chunks
            k.for_each(start, self.kv.block * chunks, lambda i: k.store(zero, values, i // chunks, (i % chunks) * 8))
            k.proxy_fence()
            k.barrier("role")

    def _score(self, raw: Value, row: Value, column: Value) -> Value:
        """Scaled, capped, biased and masked score, in units of log2."""
        k = self.k
        token, head = self._row(row)
        position = self.kv_len - self.q_len + token
        value = raw * f64(self.op, "scale")
        if "softcap" in self.op.attributes:
            cap = f64(self.op, "softcap")
            value = activations.tanh(value * (1.0 / cap)) * cap
        if self.alibi is not None:
            slope = k.load(self.extra["alibi"], head).to(t.f32())
            value = value + slope * (column.to(t.f32()) - position.to(t.f32()))
        visible = column <= position
        if "window" in self.op.attributes:
            window = ir.IntegerAttr(self.op.attributes["window"]).value
            visible = visible & (column + window > position)
        return select(visible, value * math.log2(math.e), -math.inf)

    def _add_sinks(self, total: Value, maximum: Value, rows: ir.Type) -> Value:
        k = self.k

        def add(s: Value, m: Value, row: Value, _: Value) -> Value:
            _, head = self._row(row)
            sink = k.load(self.extra["sinks"], head.min(self.heads - 1)).to(t.f32())
            return s + (sink * math.log2(math.e) - m).exp2()

        return k.map([total, maximum], [t.f32(), t.f32()], add, [rows])

    def _store(self, out: Value, total: Value) -> None:
        k = self.k
        f32 = [t.f32(), t.f32()]
        out_type = t.frag((ROWS, self.dim), t.f32())
        final = k.map([out, total], f32, lambda o, s, r, c: o / s, [out_type])

        def store(v: Value, row: Value, column: Value) -> None:
            token, head = self._row(row)
            at = ((self.first_row + token) * self.heads + head) * self.dim + column
            inside = (token < self.q_len) & self.active
            k.store(v.to(self.dtype), self.out, at, condition=inside)

        k.epilogue([final], [t.vector(2, t.f32())], store, at=(0, 0))


def build(kernel_op: Any, config: Config = Config()) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: an upper bound of the tiles by the KV heads."""
    return _Kernel(kernel_op, config).build()
