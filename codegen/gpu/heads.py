"""Where the heads of a `rope_append` kernel come from: slices, norms and rotations traced back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir import ir

from ..kernel import UnsupportedKernel
from .body import Body, last, shape


@dataclass(frozen=True)
class Heads:
    """Heads of one kind (queries, keys or values) as columns of an argument.

    Head h of row t starts at element `t * stride + offset + h * dim` of `source`. `norm` and
    `rope` are the ops applied to it, in that order, or None.
    """

    source: ir.Value
    stride: int
    offset: int
    count: int
    dim: int
    norm: Any = None
    rope: Any = None


def trace(body: Body, value: ir.Value) -> Heads:
    """Follows `value` [T, heads, dim] back to an argument of the kernel."""
    _, count, dim = shape(value)
    rope = norm = None
    offset = 0
    while not body.is_argument(value):
        op = value.owner.operation
        if op.name == "llm.rope" and rope is None and norm is None:
            rope, value = op, op.operands[0]
        elif op.name == "llm.rms_norm" and norm is None:
            norm, value = op, op.operands[0]
        elif op.name in ("tensor.expand_shape", "tensor.collapse_shape", "arith.extf", "arith.truncf", "tensor.cast"):
            value = op.operands[0]
        elif op.name == "tensor.extract_slice":
            offsets = list(ir.DenseI64ArrayAttr(op.attributes["static_offsets"]))
            strides = list(ir.DenseI64ArrayAttr(op.attributes["static_strides"]))
            if offsets[0] != 0 or any(s != 1 for s in strides) or len(offsets) != 2:
                raise UnsupportedKernel(f"@{body.name}: {op} is not a range of columns")
            offset, value = offset + offsets[1], op.operands[0]
        else:
            raise UnsupportedKernel(f"@{body.name}: cannot read heads through {op.name}")
    stride = last(value) if len(shape(value)) == 2 else last(value) * (shape(value)[1] or 0)
    return Heads(value, stride, offset, count or 0, dim or 0, norm, rope)
