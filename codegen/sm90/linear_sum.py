"""The sum over K of a tile of a linear, by wgmma from the stages of a ring.

16-bit operands accumulate in the tensor core. Of 8-bit ones it keeps some 14 bits of a sum, so those are *promoted*:
what one swizzle span (128 of K) gives starts from zero and is then added to a float32 sum in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir

from ..builder import KernelBuilder, Value
from ..builder import types as t
from .linear_maps import span

ROWS = 64
"""Rows of A that a warpgroup multiplies."""
BOTH = 64
"""The most columns of which two products of 8-bit operands are in flight beside their sum: registers."""


@dataclass(frozen=True)
class Operands:
    """What the stages of a ring hold: A [rows, depth] times B [columns, depth]^T, both row-major.

    take: a stage's tiles to (A's 64 rows of this warpgroup, B).
    """

    dtype: ir.Type
    rows: int
    columns: int
    depth: int
    take: Callable[[Value, Value], tuple[Value, Value]]


def sums(columns: int, spans: int, promoted: bool) -> int:
    """Float32 registers of a thread for the sum of `columns` columns, over stages of so many spans."""
    if not promoted:
        return columns // 2
    return columns // 2 * (3 if spans > 1 and columns <= BOTH else 2)


def product(k: KernelBuilder, ring: Value, slots: Sequence[ir.Type], steps: int, operands: Operands) -> Value:
    """The settled float32 fragment [64, columns] of all stages; the ring is released."""
    if operands.dtype.width == 8:
        return _promoted(k, ring, slots, steps, operands)
    acc_type = t.acc(ROWS, operands.columns, t.f32())

    def multiply(acc: Value, *stage: Value) -> Value:
        return k.wgmma_wait([k.wgmma(*operands.take(*stage), acc, acc_type)], [acc_type], pending=1)

    def step(_: Value, acc: Value) -> Value:
        return k.consume(ring, slots, lambda *stage: multiply(acc, *stage), [acc_type], keep=1)

    acc = k.for_(0, steps, 1, step, [k.zero_acc(acc_type)])
    settled = k.wgmma_wait([acc], [t.frag((ROWS, operands.columns), t.f32())])
    k.release(ring)
    return settled


def _promoted(k: KernelBuilder, ring: Value, slots: Sequence[ir.Type], steps: int, operands: Operands) -> Value:
    columns, width = operands.columns, span(operands.dtype)
    acc_type, sum_type = t.acc(ROWS, columns, t.f32()), t.frag((ROWS, columns), t.f32())
    spans, pair = operands.depth // width, t.vector(2, t.f32())
    a_type = t.smem((ROWS, width), operands.dtype, 128, slab_rows=operands.rows)
    b_type = t.smem((columns, width), operands.dtype, 128)

    def start(a: Value, b: Value, index: int) -> Value:
        if spans > 1:
            a, b = (k.slice(tile, [0, index * width], type_) for tile, type_ in ((a, a_type), (b, b_type)))
        return k.wgmma(a, b, k.zero_acc(acc_type), acc_type)

    def add(total: Value, part: Value) -> Value:
        return k.map([total, part], [pair, pair], lambda x, y, *_: x + y, [sum_type])

    def stage(total: Value, *tiles: Value) -> list[Value]:
        """The sum without the last span, and that span, which is added when the stage is free again."""
        a, b = operands.take(*tiles)
        running = start(a, b, 0)
        for index in range(1, spans):
            if columns <= BOTH:
                following = start(a, b, index)
                total = add(total, k.wgmma_wait([running], [sum_type], pending=1))
            else:
                total = add(total, k.wgmma_wait([running], [sum_type]))
                following = start(a, b, index)
            running = following
        return [total, k.wgmma_wait([running], [sum_type])]

    def step(_: Value, total: Value) -> Value:
        return add(*k.consume(ring, slots, lambda *tiles: stage(total, *tiles), [sum_type, sum_type]))

    return k.for_(0, steps, 1, step, [k.fill(k.f32(0.0), sum_type)])
