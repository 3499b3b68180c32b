"""Writes weights.safetensors: evaluates the recipes of all parameters as streams of row chunks.

No tensor is ever whole in memory, and the bytes depend on the checkpoint's values and the recipes
alone.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from llmc.compiler.dtypes import BY_NAME, DType
from llmc.compiler.layouts import Layout, parse_layout
from llmc.compiler.progress import SILENT, Progress
from llmc.compiler.recipes import Recipe, RecipeError, Shape, TensorSource, parse_recipe
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
        return parse_layout(self.layout)

    def parsed_recipe(self) -> Recipe | None:
        return None if self.recipe is None else parse_recipe(self.recipe)

    def chunks(self, source: TensorSource | None) -> Iterator[np.ndarray]:
        """The stored elements in order, as C-contiguous arrays of `dtype`. `source` may be None for
        a weight with a value."""
        layout = self._layout
        if not self.shape:
            yield np.ascontiguousarray(self._rows(None, source, 0, 1)).astype(self.dtype.np)
            return
        recipe = self.parsed_recipe()
        row_bytes = 4 * int(np.prod(self.shape[1:], dtype=np.int64))
        multiple = layout.row_multiple
        step = max(CHUNK_BYTES // max(row_bytes, 1) // multiple, 1) * multiple
        for begin in range(0, self.shape[0], step):
            rows = self._rows(recipe, source, begin, min(begin + step, self.shape[0]))
            yield np.ascontiguousarray(layout.store(rows.astype(self.dtype.np, copy=False)))

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
    """Wide elements first, so that every tensor is aligned to its element."""
    return sorted(weights, key=lambda weight: -weight.dtype.bytes)


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
) -> dict[str, str]:
    """Streams the file through `write`; returns the sha256 of each tensor's stored bytes."""
    ordered = storage_order(weights)
    write(safetensors_header(ordered))
    hashes = {}
    total = sum(weight.stored_bytes for weight in ordered)
    with progress.task("packing weights", total, "bytes") as advance:
        for weight in ordered:
            digest = hashlib.sha256()
            written = 0
            for chunk in weight.chunks(checkpoint):
                data = chunk.view(np.uint8).data.cast("B")
                digest.update(data)
                write(data)
                written += len(data)
                advance(len(data))
            assert written == weight.stored_bytes, weight.name
            hashes[weight.name] = digest.hexdigest()
    return hashes
