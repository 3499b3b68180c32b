"""Tensor maps of row-major matrices."""

from __future__ import annotations

from mlir import ir

from ..gpu.body import bytes_of, dtype_name
from ..kernel import Argument, Expression

SPAN_BYTES = 128
"""Bytes of a row that one swizzle of 128 keeps together, and the K of a multiply's operands is counted in."""


def span(dtype: ir.Type) -> int:
    """Elements of one swizzle span."""
    return SPAN_BYTES // bytes_of(dtype)


def tensor_map(
    base: Argument,
    columns: int,
    rows: Expression,
    box_rows: int,
    dtype: ir.Type,
    box_columns: int = 0,
    swizzle: int = 128,
) -> Argument:
    """The map of a row-major matrix, in boxes of `box_rows` by `box_columns` (0: one swizzle span)."""
    return {
        "tensor_map": {
            "base": base,
            "dtype": dtype_name(dtype),
            "shape": [columns, rows],
            "strides": [columns * bytes_of(dtype)],
            "box": [box_columns or span(dtype), box_rows],
            "swizzle": swizzle,
            "l2_promotion": 256,
            "fill": "zero",
        }
    }
