"""Reads one quantized linear by its description, and checks what it finds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from llmc.frontends.checkpoint.base import Checkpoint
from llmc.frontends.checkpoint.quantized.description import LayerDescription, Packing, Part, StoredFormat
from llmc.frontends.errors import FrontendError


class StoredLayer:
    """One quantized linear of a checkpoint of plain tensors (`files`).

    Raises FrontendError, with the layer's name, when a tensor is missing or is not what the description says.
    """

    def __init__(self, description: LayerDescription, files: Checkpoint, present: set[str]):
        self.description = description
        self._files = files
        for part in description.parts():
            self._check(part, present)

    @property
    def format(self) -> StoredFormat:
        return self.description.format

    @property
    def shape(self) -> tuple[int, int]:
        return self.description.shape

    @property
    def groups(self) -> int:
        """Scales of one out feature."""
        return self.shape[1] // self.format.group if self.format.group else 1

    def codes(self, rows: slice) -> np.ndarray:
        """[n, K] of the codes' type; 4-bit codes are int8 within -8..7."""
        codes = self._read(self.description.codes, rows)
        if self.format.weight == "f8E4M3FN" and (np.asarray(codes).view(np.uint8) & 0x7F == 0x7F).any():
            raise FrontendError(f"{self._name(self.description.codes)} holds NaN codes: quantize the model again")
        return codes

    def scales(self, rows: slice) -> np.ndarray:
        """float32 [n, groups]. Raises FrontendError where one is infinite, NaN or negative."""
        part = self.description.scales
        scales = self._read(part, rows).astype(np.float32)
        bad = ~np.isfinite(scales) | (scales < 0)
        if bad.any():
            raise FrontendError(
                f"{self._name(part)} holds {int(bad.sum())} scales that are infinite, NaN or negative among "
                f"{bad.size}: expected positive numbers; quantize the model again"
            )
        if self.format.blocks:  # the last block may be cut
            return np.repeat(scales, self.format.group, axis=1)[:, : self.shape[1]]
        return scales

    def zeros(self, rows: slice) -> np.ndarray | None:
        """int8 [n, groups] zero points on the scale of `codes`; None where the format has none."""
        part = self.description.zeros
        if part is None:
            return None
        zeros = self._read(part, rows).astype(np.int8)
        if not self.format.zeros and not any((zeros == value).all() for value in (0, *part.also_none)):
            raise FrontendError(
                f"{self._name(part)} holds zero points, although the configuration calls the format symmetric: "
                "one of them is wrong"
            )
        return zeros if self.format.zeros else None

    def order(self) -> np.ndarray:
        """The group of each in feature, [K]. Raises FrontendError when groups are not all of one size."""
        count, group = self.groups, self.format.group or self.shape[1]
        consecutive = np.arange(self.shape[1]) // group
        part = self.description.order
        if part is None:
            return consecutive
        order = np.asarray(self._files.read(self._name(part))).astype(np.int64)
        if order.min() < 0 or order.max() >= count:
            raise FrontendError(
                f"{self._name(part)} sends in features to groups {order.min()} to {order.max()}: "
                f"expected 0 to {count - 1}, the groups that have scales; quantize the model again"
            )
        sizes = np.bincount(order, minlength=count)
        if not (sizes == group).all():
            wrong = int(np.flatnonzero(sizes != group)[0])
            raise FrontendError(
                f"{self._name(part)} is no permutation of groups of {group}: group {wrong} has {sizes[wrong]} "
                "in features; quantize the model again"
            )
        if not self.format.ordered and not np.array_equal(order, consecutive):
            raise FrontendError(
                f"{self._name(part)} puts in features out of order, although the configuration says desc_act = false: "
                "one of them is wrong"
            )
        return order

    def input_scale(self) -> float | None:
        """The stored scale of static inputs. Raises FrontendError unless it is finite and positive."""
        part = self.description.input_scale
        if part is None:
            return None
        value = float(np.asarray(self._files.read(self._name(part))).reshape(-1)[0])
        if not np.isfinite(value) or value <= 0:
            raise FrontendError(f"{self._name(part)} is {value}: expected a positive number; quantize the model again")
        return value

    def dequantize(self, rows: slice) -> np.ndarray:
        """The values [n, K] in float32."""
        codes = self.codes(rows).astype(np.float32)
        scales, zeros = self.scales(rows), self.zeros(rows)
        if self.format.blocks:
            return codes * scales
        if self.format.ordered:
            order = self.order()
            return (codes if zeros is None else codes - zeros[:, order]) * scales[:, order]
        grouped = codes.reshape(codes.shape[0], scales.shape[1], -1)
        if zeros is not None:
            grouped = grouped - zeros[:, :, None]
        return (grouped * scales[:, :, None]).reshape(codes.shape)

    def check_values(self) -> ScaleRange:
        """Reads scales, zero points, order and input scale; raises FrontendError for the first that is wrong."""
        every = slice(0, self.shape[0])
        scales = self.scales(every)
        self.zeros(every)
        self.order()
        stored = self.input_scale()
        return ScaleRange(float(scales.min()), float(scales.max()), stored)

    def _name(self, part: Part) -> str:
        return f"{self.description.module}.{part.suffix}"

    def _check(self, part: Part, present: set[str]) -> None:
        name = self._name(part)
        if name not in present:
            raise FrontendError(
                f"the quantized layer '{self.description.module}' lacks '{name}': expected {' or '.join(part.dtypes)} "
                f"of shape {list(part.shape)}, as its format ({self.format}) says; fetch the checkpoint again"
            )
        dtype, shape = self._files.dtype(name), tuple(self._files.shape(name))
        if dtype not in part.dtypes:
            raise FrontendError(f"'{name}' has dtype {dtype}: expected {' or '.join(part.dtypes)} ({self.format})")
        if shape != part.shape and shape not in part.also_shapes:
            raise FrontendError(
                f"'{name}' has shape {list(shape)}: expected {list(part.shape)} for {self.shape[0]} out and "
                f"{self.shape[1]} in features of {self.format}; the quantization configuration does not fit the "
                "weights, or the file is damaged"
            )

    def _read(self, part: Part, rows: slice) -> np.ndarray:
        """[n, ...]: the numbers of out features `rows`, as a matrix."""
        stored = self._files.read(self._name(part))
        begin, end = rows.indices(self.shape[0])[:2]
        if part.out_dim is None:
            return np.repeat(np.asarray(stored).reshape(1, -1), end - begin, axis=0)
        packing = part.packing
        per = part.rows_per
        if packing is not None and part.packed_dim == part.out_dim:
            per = packing.per_word
        low, high = begin // per, -(-end // per)
        index = (slice(None),) * part.out_dim + (slice(low, high),)
        numbers = stored[index]
        if packing is not None:
            length = (high - low) * per if part.packed_dim == part.out_dim else self._length(part, packing)
            numbers = _wrapped(_unpack(numbers, packing, part.packed_dim, length), part, packing)
        if part.out_dim == 1:
            numbers = numbers.T
        if packing is None and part.rows_per > 1:
            numbers = np.repeat(numbers, part.rows_per, axis=0)
        if numbers.ndim == 1:
            numbers = numbers[:, None]
        return numbers[begin - low * per : begin - low * per + end - begin]

    def _length(self, part: Part, packing: Packing) -> int:
        """In features along the packed dimension, without what fills up the last word."""
        return min(self.shape[1], part.shape[part.packed_dim] * packing.per_word)


def _unpack(words: np.ndarray, packing: Packing, dim: int, length: int) -> np.ndarray:
    """Unsigned codes as uint8, `length` of them along `dim`."""
    bits = np.ascontiguousarray(words).view(np.uint32)
    mask = np.uint32((1 << packing.bits) - 1)
    parts = [
        ((bits >> np.uint32(packing.bits * packing.place(code))) & mask).astype(np.uint8)
        for code in range(packing.per_word)
    ]
    stacked = np.stack(parts, axis=dim + 1)
    shape = list(words.shape)
    shape[dim] *= packing.per_word
    return stacked.reshape(shape)[(slice(None),) * dim + (slice(0, length),)]


def _wrapped(codes: np.ndarray, part: Part, packing: Packing) -> np.ndarray:
    """Signed codes as int8: the format's offset added, first within the bits where the part wraps."""
    half = 1 << (packing.bits - 1)
    shifted = codes.astype(np.int16) + part.added
    if part.wraps:
        shifted &= (1 << packing.bits) - 1
    return (shifted - half).astype(np.int8)


@dataclass(frozen=True)
class ScaleRange:
    """Smallest and largest scale of a layer's weights, and the scale of its inputs where it is stored."""

    least: float
    largest: float
    input_scale: float | None

    @property
    def all_ones(self) -> bool:
        """What a quantizer leaves that never wrote its scales."""
        return self.least == 1.0 == self.largest or self.input_scale == 1.0
