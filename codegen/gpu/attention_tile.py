"""What the attention kernels share: the op, the rows of a tile, its queries and its pages.

The rows of a tile are (token, query head of the group) pairs, token-major, so the pages of a KV head
are read once for all its query heads.
"""

from __future__ import annotations

from typing import Any

from mlir import ir

from ..builder import KernelBuilder, Value, select
from ..builder import types as t
from ..builder.approx import reciprocal
from ..kernel import UnsupportedKernel
from .body import Body, element, pointer, shape
from .kv import KvLayer
from .softmax import Softmax

ROWS = 64
"""Rows of a warpgroup."""
SLAB = 64
"""Columns of one 128-byte swizzle span."""


class AttentionTile:
    """One tile of one `llm.paged_attention` while its kernel is being built.

    It has `rows` rows, and goes over the keys in steps of `step_pages` pages, which are `span` keys.

    A kernel sets `q`, `head`, `base`, `first_row`, `q_len`, `kv_len` and `active` (whether the tile
    exists) before it asks for rows, pages or queries.
    """

    q: Value
    head: Value
    base: Value
    first_row: Value
    q_len: Value
    kv_len: Value
    active: Value

    def __init__(self, kernel_op: Any, rows: int, step_pages: int = 1):
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
        self.tile_rows = rows
        self.heads = shape(self.op.results[0])[1] or 0
        self.group = self.heads // self.kv.heads
        self.dim = self.kv.head_dim
        self.dtype = element(self.query)
        self.window = ir.IntegerAttr(self.op.attributes["window"]).value if "window" in self.op.attributes else None
        self.swizzle = next(span for span in (128, 64, 32) if self.dim * 2 % span == 0)
        self.step_pages = step_pages
        self.span = step_pages * self.kv.block
        self.stage = t.smem((self.span, self.dim), self.kv.element, self.swizzle)
        self.scores = t.frag((ROWS, self.span), t.f32())
        self.scores_acc = t.acc(ROWS, self.span, t.f32())
        self.rows = t.frag((ROWS,), t.f32(), "rows")
        self.output = t.frag((ROWS, self.dim), t.f32())
        self.output_acc = t.acc(ROWS, self.dim, t.f32())

    def _check(self) -> None:
        kv, name = self.kv, self.body.name
        if kv.head_dim != kv.v_head_dim or kv.head_dim % SLAB or kv.head_dim > 256:
            raise UnsupportedKernel(
                f"@{name}: expected equal key and value dimensions of 64, 128, 192 or 256, found {kv}"
            )
        self._check_pages()

    def _check_pages(self) -> None:
        kv, name = self.kv, self.body.name
        if kv.block % 16 or not 16 <= kv.block <= 256:
            raise UnsupportedKernel(f"@{name}: expected pages of 16 to 256 tokens, found {kv.block}")
        if element(self.query) != kv.element:
            raise UnsupportedKernel(f"@{name}: expected queries of the cache's type, found {self.query.type} and {kv}")
        if "causal" not in self.op.attributes:
            raise UnsupportedKernel(f"@{name}: attention over a cache is causal")

    def extra_operands(self) -> list[tuple[str, ir.Value]]:
        return [(n, v) for n, v in (("sinks", self.sinks), ("alibi", self.alibi)) if v is not None]

    def extra_types(self) -> dict[str, ir.Type]:
        return {name: pointer(v, weight=True) for name, v in self.extra_operands()}

    def row(self, row: Value) -> tuple[Value, Value]:
        """(token of the sequence, query head) of a row of the tile."""
        packed = self.base + row
        return packed // self.group, self.head * self.group + packed % self.group

    def pages(self, k: KernelBuilder) -> tuple[Value, Value]:
        """Pages [first, last) that some row of the tile attends to, at least one."""
        block = self.kv.block
        offset = self.kv_len - self.q_len
        last_token = ((self.base + (self.tile_rows - 1)) // self.group).min(self.q_len - 1)
        last = select(self.active, (offset + last_token) // block + 1, 1)
        if self.window is None:
            return k.i32(0), last
        position = offset + self.base // self.group + 1
        inside = self.active & (position > self.window)
        return select(inside, (position - self.window) // block, 0), last

    def softmax(self, k: KernelBuilder, extra: dict[str, Value]) -> Softmax:
        return Softmax(
            k=k,
            op=self.op,
            scores=self.scores,
            rows=self.rows,
            weights=t.frag((ROWS, self.span), self.kv.element, "operand_a"),
            position=lambda row: self.kv_len - self.q_len + self.row(row)[0],
            head=lambda row: self.row(row)[1].min(self.heads - 1),
            alibi=extra.get("alibi"),
            sinks=extra.get("sinks"),
        )

    def inverse(self, k: KernelBuilder, total: Value) -> Value:
        """1 / total of each row: one reciprocal a row in place of a division an element."""
        return k.map([total], [t.f32()], lambda s, r, c: reciprocal(s), [self.rows])

    def rescale(self, k: KernelBuilder, out: Value, scale: Value, shift: Value) -> Value:
        """`out` times the scale of each row, which most steps can leave out."""

        def multiply() -> Value:
            return k.map([out, scale], [t.f32(), t.f32()], lambda o, f, r, c: o * f, [self.output])

        return k.if_else(k.any(shift), multiply, lambda: out, [self.output])

    def load_pages(self, k: KernelBuilder, map_: Value, blocks: list[Value], stage: Value) -> None:
        """Loads the pages of one step, block by block, one below the other."""
        part = t.smem((self.kv.block, self.dim), self.kv.element, 128, slab_rows=self.span)
        for n, block in enumerate(blocks):
            rows = stage if len(blocks) == 1 else k.slice(stage, [n * self.kv.block, 0], part)
            k.tma_load(map_, [block, self.head, 0, 0], rows)

    def copy_queries(self, k: KernelBuilder, q_tile: Value) -> None:
        """The role copies the tile's queries to shared memory, zero for rows past the sequence."""
        chunks = self.dim // 8

        def copy(i: Value) -> None:
            row, column = i // chunks, (i % chunks) * 8
            token, head = self.row(row)
            at = ((self.first_row + token) * self.heads + head) * self.dim + column
            inside = (token < self.q_len) & self.active
            k.store(k.load(self.q, at, count=8, condition=inside), q_tile, row, column)

        k.for_each(0, self.tile_rows * chunks, copy)
        k.proxy_fence()
        k.barrier("role")

    def clear_tail(self, k: KernelBuilder, values: Value, first: Value) -> None:
        """Zeroes the values past the end of the sequence: 0 times garbage could be NaN."""
        chunks = self.dim // 8
        with k.if_(first + self.span > self.kv_len):
            zero = k.zero(t.vector(8, self.kv.element))
            start = (self.kv_len - first) * chunks
            k.for_each(start, self.span * chunks, lambda i: k.store(zero, values, i // chunks, (i % chunks) * 8))
            k.proxy_fence()
            k.barrier("role")
