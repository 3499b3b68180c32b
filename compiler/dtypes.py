"""Element types of the engine format and their names elsewhere."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np


@dataclasses.dataclass(frozen=True)
class DType:
    """name: in manifest and plan; safetensors, mlir, numpy: the same type there."""

    name: str
    safetensors: str
    mlir: str
    numpy: str
    bytes: int

    @functools.cached_property
    def np(self) -> np.dtype:
        if hasattr(np, self.numpy):
            return np.dtype(self.numpy)
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, self.numpy))


_ALL = (
    DType("f32", "F32", "f32", "float32", 4),
    DType("f16", "F16", "f16", "float16", 2),
    DType("bf16", "BF16", "bf16", "bfloat16", 2),
    DType("f8e4m3", "F8_E4M3", "f8E4M3FN", "float8_e4m3fn", 1),
    DType("f8e5m2", "F8_E5M2", "f8E5M2", "float8_e5m2", 1),
    DType("i8", "I8", "i8", "int8", 1),
    DType("u8", "U8", "ui8", "uint8", 1),
    DType("i32", "I32", "i32", "int32", 4),
    DType("i64", "I64", "i64", "int64", 8),
    DType("u64", "U64", "ui64", "uint64", 8),
)
BY_NAME = {dtype.name: dtype for dtype in _ALL}
BY_MLIR = {dtype.mlir: dtype for dtype in _ALL} | {"i4": BY_NAME["u8"]}  # two share a byte
BY_SAFETENSORS = {dtype.safetensors: dtype for dtype in _ALL}
