"""Adds up the splits of decode attention.

Grid: (blocks that walk over the tokens, query heads). A row of one split is done already. For others
each warp finds the largest maximum M and the total, a lane a split; then each group of threads adds the
splits g, g + groups, ...: out = sum(O_z 2^(m_z - M)) / (sum(l_z 2^(m_z - M)) + 2^(sink - M)), and the
first group adds the groups. The order of every sum is fixed by the number of splits.

Workspace: sums f32 [T, heads, most, dim] (not divided), ends f32 [T, heads, most, 2] (the maximum in
exponents of two, the total), counts i32 [T, heads] (splits of the row).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..builder import KernelBuilder, Value, select
from ..builder import types as t
from ..builder.approx import reciprocal
from ..kernel import Argument, Expression
from .body import Body, element, pointer, shape
from .kv import KvLayer
from .softmax import LOG2E, LOWEST

THREADS = 128
TOKEN_BLOCKS = 64
"""Blocks of each head: with 32 heads one wave, at 16 blocks of 128 threads a multiprocessor."""
VECTOR = 4
UNROLL = 8
"""Splits whose loads a thread has in flight."""
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

        def stats(row: Value, count: Value) -> tuple[Value, Value]:
            """(largest maximum, total) over the splits of a row."""

            # All `most` places are read, so that the loads need not wait for the count.
            def end(z: Value) -> tuple[Value, Value]:
                pair = k.load(ends, (row * most + z) * 2, count=2)
                return select(z < count, pair[0], LOWEST), select(z < count, pair[1], 0.0)

            highest = k.for_each(0, most, lambda z, m: m.max(end(z)[0]), [k.f32(LOWEST)], scope="warp")
            highest = k.reduce("max", highest, scope="warp")

            def add(z: Value, total: Value) -> Value:
                maximum, sum_ = end(z)
                return total + sum_ * (maximum - highest).exp2()

            total = k.reduce("add", k.for_each(0, most, add, [k.f32(0.0)], scope="warp"), scope="warp")
            if sinks is not None:
                total = total + (k.load(more[0], head).to(t.f32()) * LOG2E - highest).exp2()
            return highest, total

        def merge(row: Value, count: Value, highest: Value, total: Value) -> None:
            def gather(first: Value, mine: Value) -> Value:
                # Clamped, not conditional: ptxas puts plain loads in front of their uses.
                splits = [(first + u * groups).min(count - 1) for u in range(UNROLL)]
                places = [row * most + z for z in splits]
                maxima = [k.load(ends, place * 2) for place in places]
                parts = [k.load(sums, place * dim + column, count=VECTOR) for place in places]
                for u, (maximum, part) in enumerate(zip(maxima, parts, strict=True)):
                    weight = select(first + u * groups < count, (maximum - highest).exp2(), 0.0)
                    mine = mine + part * weight
                return mine

            mine = k.for_(group, count, groups * UNROLL, gather, [k.zero(vector)])
            with k.if_(group < groups):
                k.store(mine, partial, group, column)
            k.barrier()
            with k.if_(group.equals(0)):
                whole = k.load(partial, 0, column, count=VECTOR)
                for g in range(1, groups):
                    whole = whole + k.load(partial, g, column, count=VECTOR)
                k.store((whole * reciprocal(total)).to(dtype), out, row * dim + column)
            # The next row writes `partial` again.
            k.barrier()

        def token(i: Value) -> None:
            row = i * heads + head
            count = k.load(counts, row)
            highest, total = stats(row, count)
            # Nobody writes the count of a padding token: it may be anything, its row too.
            with k.if_((count > 1) & (count <= most)):
                merge(row, count, highest, total)

        # A block of several tokens first asks whether any was split.
        first, blocks = k.program_id(), k.num_programs()

        def largest() -> Value:
            def count(n: Value, found: Value) -> Value:
                return found.max(k.load(counts, (first + n * blocks) * heads + head))

            turns = (tokens - first + blocks - 1) // blocks
            return k.reduce("max", k.for_each(0, turns, count, [k.i32(0)], scope="warp"), scope="warp")

        found = k.if_else(tokens > blocks, largest, lambda: k.i32(2), [t.i32()])
        with k.if_(found > 1):
            k.for_(first, tokens, blocks, token)
    arguments = [{"result": 0}, *workspace.arguments(), {"i32": workspace.most}, {"i32": "T"}]
    if sinks is not None:
        arguments.append(body.operand(sinks))
    return k, (["min", "T", TOKEN_BLOCKS], heads, 1), arguments
