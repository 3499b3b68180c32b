"""The special-function instructions of the hardware, on float32 scalars.

LLVM selects them from `math` ops only under fast-math, and otherwise calls a device library that we
do not ship; so they are named here. Errors are those of the PTX manual.
"""

from __future__ import annotations

import math

from mlir import ir
from mlir.dialects import llvm

from . import types as t
from .location import here
from .values import Value, constant, pack, select


def _instruction(name: str, x: Value) -> Value:
    op = llvm.InlineAsmOp(t.f32(), [x.ir], f"{name} $0, $1;", "=f,f", loc=here())
    return Value(op.res)


def log2(x: Value) -> Value:
    """lg2.approx: absolute error 2^-22 on [0.5, 2], relative 2^-22 elsewhere."""
    return _instruction("lg2.approx.f32", x)


def log(x: Value) -> Value:
    return log2(x) * math.log(2.0)


def reciprocal(x: Value) -> Value:
    """rcp.approx: relative error 1 ulp. Elementwise on vectors; a true division takes ten times as long."""
    if isinstance(x.type, ir.VectorType):
        return pack([_instruction("rcp.approx.f32", x[i]) for i in range(x.type.shape[0])])
    return _instruction("rcp.approx.f32", x)


def sin_cos(x: Value) -> tuple[Value, Value]:
    """(sin x, cos x) with an absolute error below 1e-6 for |x| up to 10^5.

    The approximate instructions are good to 2^-20 within [-pi, pi] only, so x is reduced first by
    a three-part 2 pi (Cody and Waite): n * part is exact for n < 2^15, as each part has 9 bits less
    than float32 holds.
    """
    turns = (x * (0.5 / math.pi)).round()
    reduced = x
    for part in _two_pi_parts():
        reduced = turns.fma(constant(-part, t.f32()), reduced)
    return _instruction("sin.approx.f32", reduced), _instruction("cos.approx.f32", reduced)


def _two_pi_parts() -> list[float]:
    """2 pi as a sum of floats with at most 9, 9 and 24 significant bits."""
    rest, parts = 2.0 * math.pi, []
    for bits in (9, 9):
        exponent = math.floor(math.log2(rest))
        unit = 2.0 ** (exponent - bits + 1)
        parts.append(math.floor(rest / unit) * unit)
        rest -= parts[-1]
    return [*parts, rest]


def erf(x: Value) -> Value:
    """Abramowitz and Stegun 7.1.26: absolute error 1.5e-7."""
    magnitude = x.max(-x)
    step = 1.0 / (magnitude * 0.3275911 + 1.0)
    series = step * 1.061405429 - 1.453152027
    for coefficient in (1.421413741, -0.284496736, 0.254829592):
        series = series * step + coefficient
    tail = series * step * (magnitude * magnitude * -math.log2(math.e)).exp2()
    value = 1.0 - tail
    return select(x < 0.0, -value, value)
