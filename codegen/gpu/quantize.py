"""Quantization inside row kernels: the scale of a row from its largest magnitude, and where the scales go.

`llm.dynamic_scale` needs the whole row before the first code is written, so a kernel that holds a row makes one more
pass over it, in L1, for the maximum. `llm.quantize` itself is elementwise (`replay`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlir import ir

from ..builder import KernelBuilder, Value, constant
from ..builder import types as t
from ..kernel import UnsupportedKernel
from .body import Body, f64, shape

LEAST = 2.0**-126
"""The smallest scale, so that a row of zeros does not divide by zero."""


def is_scale(value: ir.Value) -> bool:
    """Whether it has one element a row, [T, 1]."""
    return shape(value)[1:] == [1]


def row_scales(
    k: KernelBuilder, body: Body, columns: int, width: int, value_at: Callable[[ir.Value, Value], Value]
) -> dict[ir.Value, Value]:
    """The scale, a scalar, of each `llm.dynamic_scale` of the body, for the block's row.

    value_at: (tensor [T, columns], column) to its `width` elements there, as float32.
    """
    scales: dict[ir.Value, Value] = {}
    for op in body.all("llm.dynamic_scale"):
        if ir.IntegerAttr(op.attributes["group"]).value:
            raise UnsupportedKernel(f"@{body.name}: scales of groups of columns; expected one scale a row (group = 0)")
        source = op.operands[0]
        zero = constant(0.0, t.vector(width, t.f32()))

        def largest(column: Value, most: Value, source: ir.Value = source) -> Value:
            x = value_at(source, column)
            return most.max(x.max(-x))

        most = k.for_each(0, columns, largest, [zero], vector=width)
        elements = [most[i] for i in range(width)] if width > 1 else [most]
        row = k.reduce("max", _tree(elements))
        scales[op.results[0]] = (row / f64(op, "limit")).max(LEAST)
    return scales


def store_scales(
    k: KernelBuilder,
    results: Sequence[ir.Value],
    outputs: Sequence[Value],
    scales: Mapping[ir.Value, Value],
    row: Value,
) -> None:
    """Stores the results that have one element a row, from one thread; `outputs` are where the results go."""
    found = [(value, out) for value, out in zip(results, outputs, strict=True) if is_scale(value)]
    if not found:
        return
    with k.if_(k.thread_index().equals(0)):
        for value, out in found:
            if value not in scales:
                raise UnsupportedKernel(f"a result of one element a row that is no scale of it: {value}")
            k.store(scales[value], out, row)


def _tree(elements: list[Any]) -> Any:
    while len(elements) > 1:
        elements = [a.max(b) for a, b in zip(elements[::2], elements[1::2], strict=True)]
    return elements[0]
