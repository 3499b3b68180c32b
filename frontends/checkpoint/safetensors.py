"""A memory-mapped safetensors file.

The format is an 8-byte little-endian header length, a JSON header that maps names to dtype, shape and byte range, and
the data. It is read here directly, so that a damaged file is reported by what is wrong with it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from llmc.frontends.errors import FrontendError

_MAX_HEADER_BYTES = 100_000_000

#: safetensors dtype -> (our name, numpy dtype).
_DTYPES = {
    "F64": ("f64", np.dtype(np.float64)),
    "F32": ("f32", np.dtype(np.float32)),
    "F16": ("f16", np.dtype(np.float16)),
    "BF16": ("bf16", np.dtype(ml_dtypes.bfloat16)),
    "F8_E4M3": ("f8e4m3", np.dtype(ml_dtypes.float8_e4m3fn)),
    "F8_E5M2": ("f8e5m2", np.dtype(ml_dtypes.float8_e5m2)),
    "F8_E8M0": ("f8e8m0", np.dtype(ml_dtypes.float8_e8m0fnu)),
    "I64": ("i64", np.dtype(np.int64)),
    "I32": ("i32", np.dtype(np.int32)),
    "I16": ("i16", np.dtype(np.int16)),
    "I8": ("i8", np.dtype(np.int8)),
    "U64": ("u64", np.dtype(np.uint64)),
    "U32": ("u32", np.dtype(np.uint32)),
    "U16": ("u16", np.dtype(np.uint16)),
    "U8": ("u8", np.dtype(np.uint8)),
    "BOOL": ("bool", np.dtype(np.bool_)),
}


@dataclass(frozen=True)
class TensorEntry:
    dtype: str
    numpy_dtype: np.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


class SafetensorsFile:
    """The tensors of one file; reading is a view of the mapping."""

    def __init__(self, path: Path):
        self.path = path
        size = path.stat().st_size
        with path.open("rb") as file:
            prefix = file.read(8)
            if len(prefix) < 8:
                raise self._error(f"only {size} bytes long")
            header_bytes = int.from_bytes(prefix, "little")
            if header_bytes > min(size - 8, _MAX_HEADER_BYTES):
                raise self._error(f"the header claims {header_bytes} bytes, the file has {size}")
            header = file.read(header_bytes)
        try:
            table = json.loads(header)
            table.pop("__metadata__", None)
            self._entries = {name: self._entry(name, row) for name, row in table.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._error(f"unreadable header ({error})") from None
        needed = 8 + header_bytes + max((entry.end for entry in self._entries.values()), default=0)
        if needed > size:
            raise self._error(f"truncated: needs {needed} bytes, has {size}; fetch the file again")
        # An empty mapping is an error, an empty file of tensors is not.
        self._data: Any = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + header_bytes) if self._entries else None

    def _error(self, detail: str) -> FrontendError:
        return FrontendError(f"damaged weight file {self.path}: {detail}")

    def _entry(self, name: str, row: dict[str, Any]) -> TensorEntry:
        if row["dtype"] not in _DTYPES:
            raise self._error(f"tensor '{name}' has unknown dtype {row['dtype']}")
        label, dtype = _DTYPES[row["dtype"]]
        shape = tuple(int(size) for size in row["shape"])
        begin, end = row["data_offsets"]
        if begin < 0 or end - begin != math.prod(shape) * dtype.itemsize:
            raise self._error(f"tensor '{name}' of shape {list(shape)} and dtype {label} holds {end - begin} bytes")
        return TensorEntry(label, dtype, shape, begin, end)

    def names(self) -> list[str]:
        return sorted(self._entries)

    def entry(self, name: str) -> TensorEntry:
        return self._entries[name]

    def read(self, name: str, rows: slice | None) -> np.ndarray:
        entry = self._entries[name]
        array = self._data[entry.begin : entry.end].view(entry.numpy_dtype).reshape(entry.shape)
        return array if rows is None else array[rows]
