"""Elementwise work that found no other kernel, one block a row.

Every value of the body is replayed on vectors of a row's elements; operands are [T, C], [T, heads, D] of C
elements a row, or [C]. Where a scale of the row is wanted (`quantize`), a first pass finds it.
Floor: the bytes of the operands and results.
"""

from __future__ import annotations

import functools
from typing import Any

from mlir import ir

from ..builder import KernelBuilder, Value
from ..builder import types as t
from ..kernel import Argument, Expression, UnsupportedKernel
from .body import Body, element, pointer, row_length, shape
from .quantize import is_scale, row_scales, store_scales
from .replay import Replay

THREADS = 256


def build(kernel_op: Any) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: one block for each row of the results."""
    body = Body(kernel_op)
    arguments, results = list(body.block.arguments), body.results
    columns = {row_length(v) for v in (*arguments, *results) if not (v in results and is_scale(v))}
    if len(columns) != 1:
        raise UnsupportedKernel(f"@{body.name}: expected rows of one length, found {kernel_op}")
    (count,) = columns
    width = 4 if count % 4 == 0 else 1
    types = {f"in{i}": pointer(a, weight=shape(a)[0] is not None) for i, a in enumerate(arguments)}
    types |= {f"out{i}": pointer(r) for i, r in enumerate(results)}
    k = KernelBuilder(body.name, threads=THREADS, pdl=True)
    values = k.arguments(**types)
    memory = dict(zip(arguments, values, strict=False))
    with k.body():
        k.pdl_launch()
        k.pdl_wait()
        row = k.program_id()
        start = row * count

        def replay_at(column: Value, scales: dict[ir.Value, Value]) -> Replay:
            def load(value: ir.Value) -> Value:
                at = column if len(shape(value)) == 1 else start + column
                return k.load(memory[value], at, count=width).to(t.f32())

            return Replay(k, scales, {a: functools.partial(load, a) for a in arguments})

        scales = row_scales(k, body, count, width, lambda value, column: replay_at(column, {}).value(value))
        outputs = values[len(arguments) :]

        def visit(column: Value) -> None:
            replay = replay_at(column, scales)
            for result, out in zip(results, outputs, strict=True):
                if not is_scale(result):
                    k.store(replay.value(result).to(element(result)), out, start + column)

        k.for_each(0, count, visit, vector=width)
        store_scales(k, results, outputs, scales, row)
    launch: list[Argument] = [body.operand(a) for a in arguments]
    return k, ("rows", 1, 1), [*launch, *({"result": i} for i in range(len(results)))]
