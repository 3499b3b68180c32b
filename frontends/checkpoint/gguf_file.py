"""A memory-mapped GGUF file: metadata and tensor table.

The `gguf` package's own reader turns every token of the vocabulary into array views, which costs seconds; this one
parses the same few structures directly, and says what is wrong with a damaged file.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

from llmc.frontends.errors import FrontendError

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_DEFAULT_ALIGNMENT = 32

_STRING, _ARRAY = 8, 9
#: GGUF value type -> struct code of a scalar.
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

_PLAIN_TYPES: dict[GGMLQuantizationType, Any] = {
    GGMLQuantizationType.F64: np.dtype(np.float64),
    GGMLQuantizationType.F32: np.dtype(np.float32),
    GGMLQuantizationType.F16: np.dtype(np.float16),
}


@dataclass(frozen=True)
class GgufTensor:
    type: GGMLQuantizationType
    shape: tuple[int, ...]  # outermost dimension first, as numpy and torch order them
    offset: int
    bytes: int


class _Cursor:
    """Reads the little-endian primitives of the format from a mapping."""

    def __init__(self, data: Any):
        self._data = memoryview(data)
        self.position = 0

    def take(self, count: int) -> memoryview:
        end = self.position + count
        if count < 0 or end > len(self._data):
            raise EOFError
        piece = self._data[self.position : end]
        self.position = end
        return piece

    def scalar(self, code: str) -> Any:
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def string(self) -> str:
        return bytes(self.take(self.scalar("Q"))).decode("utf-8", "surrogateescape")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            element, count = self.scalar("I"), self.scalar("Q")
            if element in _SCALARS:
                width = struct.calcsize("<" + _SCALARS[element])
                return list(struct.unpack(f"<{count}{_SCALARS[element]}", self.take(count * width)))
            return [self.value(element) for _ in range(count)]
        if kind not in _SCALARS:
            raise ValueError(f"unknown value type {kind}")
        return self.scalar(_SCALARS[kind])


class GgufFile:
    """The metadata (`fields`) and tensors of one file."""

    def __init__(self, path: Path):
        self.path = path
        self._size = path.stat().st_size
        if self._size < 24:
            raise self._error(f"only {self._size} bytes long")
        self._data = np.memmap(path, dtype=np.uint8, mode="r")
        self.fields: dict[str, Any] = {}
        self.tensors: dict[str, GgufTensor] = {}
        try:
            self._parse(_Cursor(self._data))
        except EOFError:
            raise self._error("truncated inside its header; fetch the file again") from None
        except (ValueError, UnicodeError, OverflowError, MemoryError, struct.error) as error:
            raise self._error(str(error)) from None

    def _error(self, detail: str) -> FrontendError:
        return FrontendError(f"damaged weight file {self.path}: {detail}")

    def _parse(self, cursor: _Cursor) -> None:
        if cursor.take(4) != _MAGIC:
            raise ValueError("it does not start with 'GGUF'")
        version = cursor.scalar("I")
        if version not in _VERSIONS:
            raise ValueError(f"GGUF version {version}; versions {_VERSIONS[0]} and {_VERSIONS[1]} are read")
        tensor_count, field_count = cursor.scalar("Q"), cursor.scalar("Q")
        for _ in range(field_count):
            key = cursor.string()
            self.fields[key] = cursor.value(cursor.scalar("I"))
        rows = []
        for _ in range(tensor_count):
            name, rank = cursor.string(), cursor.scalar("I")
            shape = tuple(cursor.scalar("Q") for _ in range(rank))[::-1]
            rows.append((name, shape, cursor.scalar("I"), cursor.scalar("Q")))
        alignment = self.fields.get("general.alignment", _DEFAULT_ALIGNMENT)
        start = -(-cursor.position // alignment) * alignment
        for name, shape, kind, offset in rows:
            self.tensors[name] = self._tensor(name, shape, kind, start + offset)
        self._split_check()

    def _tensor(self, name: str, shape: tuple[int, ...], kind: int, offset: int) -> GgufTensor:
        try:
            type = GGMLQuantizationType(kind)
        except ValueError:
            raise ValueError(f"tensor '{name}' has unknown type {kind}") from None
        block, block_bytes = GGML_QUANT_SIZES[type]
        if not shape or shape[-1] % block:
            raise ValueError(
                f"tensor '{name}' of type {type.name} and shape {list(shape)} is no whole number of blocks"
            )
        size = math.prod(shape) // block * block_bytes
        if offset + size > self._size:
            raise ValueError(
                f"truncated: tensor '{name}' ends at byte {offset + size}, the file has {self._size}; "
                "fetch the file again"
            )
        return GgufTensor(type, shape, offset, size)

    def _split_check(self) -> None:
        count = self.fields.get("split.count", 1)
        if count > 1:
            raise ValueError(f"it is one of {count} splits; merge them with llama-gguf-split --merge")

    def read(self, name: str, rows: slice | np.ndarray | None = None) -> np.ndarray:
        """The values of a tensor, or of some of its rows: float32, or the storage type of a plain tensor."""
        tensor = self.tensors[name]
        data = self._data[tensor.offset : tensor.offset + tensor.bytes]
        if tensor.type in _PLAIN_TYPES:
            array = data.view(_PLAIN_TYPES[tensor.type]).reshape(tensor.shape)
            return array if rows is None else array[rows]
        blocks = data.reshape(*tensor.shape[:-1], -1)
        try:
            return dequantize(blocks if rows is None else blocks[rows], tensor.type)
        except NotImplementedError:
            raise FrontendError(f"{self.path}: no dequantization for {tensor.type.name} (tensor '{name}')") from None
