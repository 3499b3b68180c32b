"""Writes weights.safetensors: evaluates the recipes of all parameters as streams of row chunks.

No tensor is ever whole in memory, and the bytes depend on the checkpoint's values and the recipes
alone.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from llmc.compiler.dtypes import BY_NAME, DType
from llmc.compiler.layouts import Layout, parse_layout
from llmc.compiler.progress import SILENT, Progress
from llmc.compiler.quantization.report import WeightReport
from llmc.compiler.recipe_error import RecipeError
from llmc.compiler.recipes import Codes, Recipe, Scales, Shape, TensorSource, parse_recipe
from llmc.errors import ModelError, bulleted

#: float32 bytes of one chunk of rows.
CHUNK_BYTES = 16 << 20
#: The data of a safetensors file begins at a multiple of this.
ALIGNMENT = 256


@dataclasses.dataclass(frozen=True)
class Weight:
    """One parameter: its logical shape [rows, ...], its element type and where the values are from.

    Exactly one of `recipe` (assembly of a recipe attribute) and `value` is set.
    """

    name: str
    dtype: DType
    shape: Shape
    recipe: str | None = None
    value: np.ndarray | None = None
    layout: str | None = None

    @property
    def stored_shape(self) -> Shape:
        return self._layout.stored_shape(self.shape)

    @property
    def stored_bytes(self) -> int:
        return int(np.prod(self.stored_shape, dtype=np.int64)) * self.dtype.bytes

    @property
    def _layout(self) -> Layout:
        recipe = self.parsed_recipe()
        return parse_layout(self.layout, pairs=isinstance(recipe, Codes) and recipe.format.type == "i4")

    def parsed_recipe(self) -> Recipe | None:
        return None if self.recipe is None else parse_recipe(self.recipe)

    def chunks(self, source: TensorSource | None) -> Iterator[np.ndarray]:
        """The stored elements in order, as C-contiguous arrays of `dtype`. `source` may be None for
        a weight with a value."""
        if not self.shape:
            yield np.ascontiguousarray(self._rows(None, source, 0, 1)).astype(self.dtype.np)
            return
        recipe = self.parsed_recipe()
        for begin, end in self._ranges():
            yield self._stored(self._rows(recipe, source, begin, end))

    def quantized_chunks(
        self, source: TensorSource, scales: Weight, report: WeightReport | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The stored elements of this weight of codes, each chunk with those of `scales` for its rows."""
        recipe = self.parsed_recipe()
        assert isinstance(recipe, Codes)
        watch = None if report is None else functools.partial(report.add, self.name)
        for begin, end in self._ranges():
            codes, of_rows = recipe.quantize(source, begin, end, watch)
            yield self._stored(codes), scales._stored(of_rows)

    def _ranges(self) -> Iterator[tuple[int, int]]:
        """Ranges of rows of about CHUNK_BYTES in float32, whole panels each."""
        row_bytes = 4 * int(np.prod(self.shape[1:], dtype=np.int64))
        multiple = self._layout.row_multiple
        step = max(CHUNK_BYTES // max(row_bytes, 1) // multiple, 1) * multiple
        for begin in range(0, self.shape[0], step):
            yield begin, min(begin + step, self.shape[0])

    def _stored(self, rows: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(self._layout.store(rows.astype(self.dtype.np, copy=False)))

    def _rows(self, recipe: Recipe | None, source: TensorSource | None, begin: int, end: int) -> np.ndarray:
        if recipe is None:
            assert self.value is not None
            return self.value if not self.shape else self.value[begin:end]
        assert source is not None
        return recipe.read(source, begin, end)

    def to_json(self) -> dict[str, Any]:
        """The row of recipes.json from which `llmc refit` makes the weight again."""
        row: dict[str, Any] = {
            "name": self.name,
            "dtype": self.dtype.name,
            "shape": list(self.shape),
            "layout": self.layout,
            "recipe": self.recipe,
        }
        if self.value is not None:
            data = np.ascontiguousarray(self.value, dtype="<f4").tobytes()
            row["value"] = base64.b64encode(data).decode("ascii")
        return row

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Weight:
        value = None
        if "value" in row:
            flat = np.frombuffer(base64.b64decode(row["value"]), dtype="<f4")
            value = flat.reshape(row["shape"])
        return cls(
            name=row["name"],
            dtype=BY_NAME[row["dtype"]],
            shape=tuple(row["shape"]),
            recipe=row["recipe"],
            value=value,
            layout=row["layout"],
        )


def check_sources(weights: Iterable[Weight], checkpoint: TensorSource, ignore: Iterable[str] = ()) -> None:
    """Every tensor that a recipe names exists and fits, and every tensor is named by a recipe.

    `ignore` names tensors that the model does not use by definition. Raises ModelError with the
    list of what is missing, does not fit or is left over.
    """
    weights = list(weights)
    present = set(checkpoint.names())
    recipes = {weight.name: weight.parsed_recipe() for weight in weights}
    used = {name for recipe in recipes.values() if recipe for name in recipe.sources()}
    if missing := sorted(used - present):
        raise ModelError(f"the checkpoint lacks {len(missing)} tensors of the model:\n{bulleted(missing)}")
    misfits = []
    for weight in weights:
        recipe = recipes[weight.name]
        if recipe is None:
            continue
        try:
            found = recipe.shape(checkpoint)
        except RecipeError as error:
            misfits.append(f"{weight.name}: {error}")
            continue
        if found != weight.shape:
            misfits.append(
                f"{weight.name}: expected shape {list(weight.shape)}, the checkpoint gives "
                f"{list(found)} ({', '.join(recipe.sources())})"
            )
    if misfits:
        raise ModelError(f"the checkpoint does not fit the model:\n{bulleted(misfits)}")
    if left_over := sorted(present - used - set(ignore)):
        raise ModelError(
            f"the model does not use {len(left_over)} tensors of the checkpoint; an engine without "
            f"them would compute something else:\n{bulleted(left_over)}"
        )


def storage_order(weights: Iterable[Weight]) -> list[Weight]:
    """Wide elements first, so that every tensor is aligned to its element.

    Scales follow their codes, which are written from the same read of the checkpoint, where the
    size of the codes leaves them aligned.
    """
    ordered = sorted(weights, key=lambda weight: -weight.dtype.bytes)
    pairs = {codes.name: scales for codes, scales in quantized_pairs(ordered) if codes.stored_bytes % 4 == 0}
    behind = {scales.name for scales in pairs.values()}
    wide = [w for w in ordered if w.dtype.bytes >= 4 and w.name not in behind and w.name not in pairs]
    paired = [part for weight in ordered if weight.name in pairs for part in (weight, pairs[weight.name])]
    narrow = [weight for weight in ordered if weight.dtype.bytes < 4 and weight.name not in pairs]
    return wide + paired + narrow


def quantized_pairs(weights: Iterable[Weight]) -> list[tuple[Weight, Weight]]:
    """Weights of codes, each with the weight of its scales."""
    codes: dict[Scales, Weight] = {}
    scales: dict[Scales, Weight] = {}
    for weight in weights:
        recipe = weight.parsed_recipe()
        if isinstance(recipe, Codes):
            codes[Scales(recipe.part, recipe.format)] = weight
        elif isinstance(recipe, Scales):
            scales[recipe] = weight
    return [(weight, scales[key]) for key, weight in codes.items() if key in scales]


def safetensors_header(weights: Iterable[Weight]) -> bytes:
    """The length word and header of the file, padded so that the data is aligned."""
    header: dict[str, Any] = {}
    offset = 0
    for weight in weights:
        end = offset + weight.stored_bytes
        header[weight.name] = {
            "dtype": weight.dtype.safetensors,
            "shape": list(weight.stored_shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def total_bytes(weights: Iterable[Weight]) -> int:
    """Size of weights.safetensors."""
    ordered = storage_order(weights)
    return len(safetensors_header(ordered)) + sum(weight.stored_bytes for weight in ordered)


def write_weights(
    weights: Iterable[Weight],
    checkpoint: TensorSource,
    write: Callable[[bytes | memoryview], Any],
    progress: Progress = SILENT,
    report: WeightReport | None = None,
    label: str = "packing weights",
) -> dict[str, str]:
    """Streams the file through `write`; returns the sha256 of each tensor's stored bytes.

    report: gets what quantizing changes. label: of the progress.
    """
    ordered = storage_order(weights)
    write(safetensors_header(ordered))
    hashes = {}
    total = sum(weight.stored_bytes for weight in ordered)
    with progress.task(label, total, "bytes") as advance:
        for weight, chunks in _streams(ordered, checkpoint, report):
            digest = hashlib.sha256()
            written = 0
            for chunk in chunks:
                data = chunk.view(np.uint8).data.cast("B")
                digest.update(data)
                write(data)
                written += len(data)
                advance(len(data))
            assert written == weight.stored_bytes, weight.name
            hashes[weight.name] = digest.hexdigest()
    return hashes


def _streams(
    ordered: list[Weight], checkpoint: TensorSource | None, report: WeightReport | None
) -> Iterator[tuple[Weight, Iterable[np.ndarray]]]:
    """The chunks of each weight, to be used up before the next one. Of a pair of codes and scales
    the scales, a hundredth of it or less, wait in memory until the codes are through."""
    scales_of = {codes.name: scales for codes, scales in quantized_pairs(ordered)}
    waiting: dict[str, list[np.ndarray]] = {}

    def codes_of(weight: Weight, scales: Weight) -> Iterator[np.ndarray]:
        assert checkpoint is not None
        for codes, of_rows in weight.quantized_chunks(checkpoint, scales, report):
            if scales.name in waiting:
                waiting[scales.name].append(of_rows)
            yield codes

    for here, weight in enumerate(ordered):
        scales = scales_of.get(weight.name)
        if weight.name in waiting:
            yield weight, waiting.pop(weight.name)
        elif scales is not None:
            if here + 1 < len(ordered) and ordered[here + 1] is scales:
                waiting[scales.name] = []
            yield weight, codes_of(weight, scales)
        else:
            yield weight, weight.chunks(checkpoint)
