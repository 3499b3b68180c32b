"""Norm of rows: RMS norm or layer norm, with what was fused around it.

One block a row, 256 threads. The row is read twice, the second time from L1: once for the
statistics (float32 sums over the block), once to scale and store; and once more in between where
a scale of the result is wanted (`quantize`). With `llm.gather_rows` in front, block r works on row
`rows[r]`. Floor: the bytes of the row in and out.
"""

from __future__ import annotations

from typing import Any

from mlir import ir

from ..builder import KernelBuilder, Value, constant, splat
from ..builder import types as t
from ..kernel import Argument, Expression, UnsupportedKernel
from .body import Body, element, f64, last, pointer, shape
from .quantize import is_scale, row_scales, store_scales
from .replay import Replay

THREADS = 256


def build(kernel_op: Any) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: one block for each row of the result."""
    body = Body(kernel_op)
    norms = body.all("llm.rms_norm") + body.all("llm.layer_norm")
    if len(norms) != 1:
        raise UnsupportedKernel(f"@{body.name}: expected one norm, found {len(norms)}")
    (norm,) = norms
    gathers = body.all("llm.gather_rows")
    hidden = last(norm.operands[0])
    width = 4 if hidden % 4 == 0 else 1
    results = body.results

    k = KernelBuilder(body.name, threads=THREADS, pdl=True)
    arguments = list(body.block.arguments)
    types = {f"in{i}": pointer(a, weight=shape(a)[0] is not None) for i, a in enumerate(arguments)}
    types |= {f"out{i}": pointer(r) for i, r in enumerate(results)}
    values = k.arguments(**types)
    memory = dict(zip(arguments, values, strict=False))
    outputs = values[len(arguments) :]

    with k.body():
        k.pdl_launch()
        k.pdl_wait()
        row = k.program_id()
        gathered = {g.operands[0]: k.load(memory[g.operands[1]], row) for g in gathers}

        def loaders(column: Value) -> dict[ir.Value, Any]:
            def load(value: ir.Value) -> Value:
                if len(shape(value)) == 1:
                    return k.load(memory[value], column, count=width).to(t.f32())
                at = gathered.get(value, row) * hidden + column
                return k.load(memory[value], at, count=width).to(t.f32())

            found: dict[ir.Value, Any] = {a: (lambda a=a: load(a)) for a in arguments}
            for g in gathers:
                found[g.results[0]] = found[g.operands[0]]
            return found

        def input_at(column: Value) -> Value:
            return Replay(k, {}, loaders(column)).value(norm.operands[0])

        scale, shift = _statistics(k, norm, hidden, width, input_at)

        def after(column: Value, scales: dict[ir.Value, Value]) -> Replay:
            replay = Replay(k, {}, loaders(column))
            value = replay.value(norm.operands[0]) * splat(scale, width)
            if shift is not None:
                value = value + splat(shift, width)
            return Replay(k, {norm.results[0]: _affine(norm, replay, value)} | scales, loaders(column))

        scales = row_scales(k, body, hidden, width, lambda value, column: after(column, {}).value(value))

        def finish(column: Value) -> None:
            replay = after(column, scales)
            for result, out in zip(results, outputs, strict=True):
                if not is_scale(result):
                    k.store(replay.value(result).to(element(result)), out, row * hidden + column)

        k.for_each(0, hidden, finish, vector=width)
        store_scales(k, results, outputs, scales, row)
    launch: list[Argument] = [body.operand(a) for a in arguments]
    launch += [{"result": i} for i in range(len(results))]
    return k, ("rows", 1, 1), launch


def _statistics(k: KernelBuilder, norm: Any, hidden: int, width: int, input_at: Any) -> tuple[Value, Value | None]:
    """(scale, shift) such that the norm, before gamma and beta, is x * scale + shift."""
    zero = constant(0.0, t.vector(width, t.f32()))
    eps = f64(norm, "eps")
    if norm.name == "llm.rms_norm":
        total = _total(k, k.for_each(0, hidden, lambda i, s: s + _square(input_at(i)), [zero], vector=width), width)
        return (total * (1.0 / hidden) + eps).rsqrt(), None
    mean = _total(k, k.for_each(0, hidden, lambda i, s: s + input_at(i), [zero], vector=width), width) * (1.0 / hidden)
    # A second pass for the variance: the difference of two large sums would lose it.
    deviation = k.for_each(0, hidden, lambda i, s: s + _square(input_at(i) - splat(mean, width)), [zero], vector=width)
    scale = (_total(k, deviation, width) * (1.0 / hidden) + eps).rsqrt()
    return scale, -(mean * scale)


def _square(x: Value) -> Value:
    return x * x


def _total(k: KernelBuilder, partial: Value, width: int) -> Value:
    return k.reduce("add", partial.sum() if width > 1 else partial)


def _affine(norm: Any, replay: Replay, value: Value) -> Value:
    if norm.name == "llm.rms_norm":
        return value * replay.value(norm.operands[1]) if len(norm.operands) == 2 else value
    has_gamma, has_beta = list(norm.attributes["operandSegmentSizes"])[1:]
    operands = list(norm.operands)[1:]
    if has_gamma:
        value = value * replay.value(operands.pop(0))
    if has_beta:
        value = value + replay.value(operands.pop(0))
    return value
