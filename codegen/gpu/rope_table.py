"""Cosines and sines of the rows' positions, once a step for all layers.

One thread an angle: angle[t, i] = positions[t] * inv_freq[i] in float32, then cos and sin after a
range reduction (angles reach 10^5 radians, where the instructions alone fail).
"""

from __future__ import annotations

from typing import Any

from ..builder import KernelBuilder, Value
from ..builder import types as t
from ..builder.approx import sin_cos
from ..kernel import Argument, Expression
from .body import Body, f64, last

THREADS = 128


def build(kernel_op: Any) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: one block for each of the T rows."""
    body = Body(kernel_op)
    op = body.find("llm.rope_table")
    positions, inv_freq = op.operands
    half = last(inv_freq)
    scaling = f64(op, "attention_scaling")
    k = KernelBuilder(body.name, threads=THREADS, pdl=True)
    positions_, inv_freq_, cos, sin = k.arguments(
        positions=t.ptr(t.i32()), inv_freq=t.ptr(t.f32(), constant=True), cos=t.ptr(t.f32()), sin=t.ptr(t.f32())
    )
    with k.body():
        k.pdl_launch()
        k.pdl_wait()
        row = k.program_id()
        position = k.load(positions_, row).to(t.f32())

        def angle(i: Value) -> None:
            s, c = sin_cos(position * k.load(inv_freq_, i))
            k.store(c * scaling, cos, row * half + i)
            k.store(s * scaling, sin, row * half + i)

        k.for_each(0, half, angle)
    order = [body.results.index(r) for r in op.results]
    arguments: list[Argument] = [body.operand(positions), body.operand(inv_freq)]
    arguments += [{"result": i} for i in order]
    return k, ("T", 1, 1), arguments
