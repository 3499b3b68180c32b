"""Adds up the splits of decode attention.

Grid: (blocks that walk over the tokens, query heads). A row of one split is done already. For others
every thread finds the largest maximum M, then each group of threads adds the splits g, g + groups, ...:
out = sum(O_z 2^(m_z - M)) / (sum(l_z 2^(m_z - M)) + 2^(sink - M)), and the first group adds the groups.

Workspace: sums f32 [T, heads, most, dim] (not divided), ends f32 [T, heads, most, 2] (the maximum in
exponents of two, the total), counts i32 [T, heads] (splits of the row).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..builder import KernelBuilder, Value
from ..builder import types as t
from ..kernel import Argument, Expression
from .body import Body, element, pointer, shape
from .kv import KvLayer
from .softmax import LOG2E, LOWEST

THREADS = 128
TOKEN_BLOCKS = 64
"""Blocks of each head: with 32 heads one wave, at 16 blocks of 128 threads a multiprocessor."""
VECTOR = 4
ALIGNMENT = 256


@dataclass(frozen=True)
class Workspace:
    """Byte offsets of the parts for at most `tokens` tokens."""

    tokens: int
    heads: int
    dim: int
    most: int

    @staticmethod
    def of(kernel_op: Any, tokens: int, most: int) -> Workspace:
        op = Body(kernel_op).find("llm.paged_attention")
        dim = KvLayer.of(list(op.operands)[1]).v_head_dim
        return Workspace(tokens, shape(op.results[0])[1] or 0, dim, most)

    @property
    def rows(self) -> int:
        return self.tokens * self.heads

    @property
    def ends(self) -> int:
        return _aligned(self.rows * self.most * self.dim * 4)

    @property
    def counts(self) -> int:
        return self.ends + _aligned(self.rows * self.most * 8)

    @property
    def bytes(self) -> int:
        return self.counts + _aligned(self.rows * 4)

    def arguments(self) -> list[Argument]:
        return [{"workspace": 0}, {"workspace": self.ends}, {"workspace": self.counts}]


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def build(kernel_op: Any, workspace: Workspace) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: at most TOKEN_BLOCKS by the query heads. Reads what the splits left in the workspace."""
    body = Body(kernel_op)
    op = body.find("llm.paged_attention")
    sinks = list(op.operands)[3] if list(op.attributes["operandSegmentSizes"])[3] else None
    dtype, dim, heads = element(op.results[0]), workspace.dim, workspace.heads
    k = KernelBuilder(f"{body.name}_merge", threads=THREADS, pdl=True)
    f32s = t.ptr(t.f32())
    extra = {} if sinks is None else {"sinks": pointer(sinks, weight=True)}
    out, sums, ends, counts, most, tokens, *more = k.arguments(
        out=t.ptr(dtype), sums=f32s, ends=f32s, counts=t.ptr(t.i32()), most=t.i32(), tokens=t.i32(), **extra
    )
    lanes = dim // VECTOR
    groups = THREADS // lanes
    vector = t.vector(VECTOR, t.f32())
    with k.body():
        k.pdl_launch()
        k.pdl_wait()
        partial = k.shared(t.smem((groups, dim), t.f32()))
        head, thread = k.program_id("y"), k.thread_index()
        group, column = thread // lanes, (thread % lanes) * VECTOR

        def stat(row: Value, z: Value, which: int) -> Value:
            return k.load(ends, (row * most + z) * 2 + which)

        def merge(row: Value, count: Value) -> None:
            highest = k.for_(0, count, 1, lambda z, m: m.max(stat(row, z, 0)), [k.f32(LOWEST)])

            def add(z: Value, total: Value) -> Value:
                return total + stat(row, z, 1) * (stat(row, z, 0) - highest).exp2()

            total = k.for_(0, count, 1, add, [k.f32(0.0)])
            if sinks is not None:
                total = total + (k.load(more[0], head).to(t.f32()) * LOG2E - highest).exp2()

            def gather(z: Value, mine: Value) -> Value:
                weight = (stat(row, z, 0) - highest).exp2()
                return mine + k.load(sums, (row * most + z) * dim + column, count=VECTOR) * weight

            mine = k.for_(group, count, groups, gather, [k.zero(vector)])
            with k.if_(group < groups):
                k.store(mine, partial, group, column)
            k.barrier()
            with k.if_(group.equals(0)):
                whole = k.for_(
                    1,
                    count.min(groups),
                    1,
                    lambda g, sum_: sum_ + k.load(partial, g, column, count=VECTOR),
                    [k.load(partial, 0, column, count=VECTOR)],
                )
                k.store((whole / total).to(dtype), out, row * dim + column)
            # The next row writes `partial` again.
            k.barrier()

        def token(i: Value) -> None:
            row = i * heads + head
            count = k.load(counts, row)
            # Nobody writes the count of a padding token: it may be anything, its row too.
            with k.if_((count > 1) & (count <= most)):
                merge(row, count)

        k.for_(k.program_id(), tokens, k.num_programs(), token)
    arguments = [{"result": 0}, *workspace.arguments(), {"i32": workspace.most}, {"i32": "T"}]
    if sinks is not None:
        arguments.append(body.operand(sinks))
    return k, (["min", "T", TOKEN_BLOCKS], heads, 1), arguments
