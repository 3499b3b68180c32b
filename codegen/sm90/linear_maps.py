"""Tensor maps of row-major matrices."""

from __future__ import annotations

from mlir import ir

from ..gpu.body import bytes_of
from ..kernel import Argument, Expression


def tensor_map(
    base: Argument,
    columns: int,
    rows: Expression,
    box_rows: int,
    dtype: ir.Type,
    box_columns: int = 64,
    swizzle: int = 128,
) -> Argument:
    """The map of a row-major matrix, in boxes of `box_rows` by `box_columns`."""
    return {
        "tensor_map": {
            "base": base,
            "dtype": str(dtype),
            "shape": [columns, rows],
            "strides": [columns * bytes_of(dtype)],
            "box": [box_columns, box_rows],
            "swizzle": swizzle,
            "l2_promotion": 256,
            "fill": "zero",
        }
    }
