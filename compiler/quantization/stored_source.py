"""Codes and scales that a checkpoint stores already, as sources for the recipes over its tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from llmc.compiler.recipe_error import RecipeError

if TYPE_CHECKING:
    from llmc.compiler.quantization.codes import CodeFormat


@dataclasses.dataclass(frozen=True)
class StoredPart:
    """The codes or the scales of every tensor of a quantized checkpoint, in place of its values.

    Rows of both are out features, so that recipes that move whole rows mean the same over either.
    """

    source: Any
    scales: bool
    group: int

    def names(self) -> list[str]:
        return self.source.names()

    def shape(self, name: str) -> tuple[int, ...]:
        rows, columns = self.source.shape(name)
        if not self.scales:
            return rows, columns
        return rows, columns // self.group if self.group else 1

    def read(self, name: str, rows: slice | None = None) -> np.ndarray:
        read = self.source.stored_scales if self.scales else self.source.stored_codes
        return read(name, slice(None) if rows is None else rows)


def stored_parts(source: Any, names: Iterable[str], format: CodeFormat) -> tuple[StoredPart, StoredPart] | None:
    """Codes and scales of these tensors as the checkpoint has them; None where they are to be made of values:
    of a checkpoint that is not quantized, and of one that is to be dequantized.

    Raises RecipeError when they are stored in another format.
    """
    if getattr(source, "dequantize", False):
        return None
    formats = {name: _format_of(source, name) for name in names}
    if not any(formats.values()):
        return None
    for name, stored in formats.items():
        fits = stored is not None and (stored.weight, stored.group) == (format.type, format.group)
        if fits and not (stored.zeros or stored.ordered or stored.blocks):
            continue
        raise RecipeError(
            f"'{name}' is {f'quantized ({stored})' if stored else 'not quantized'}, the engine needs {format.type} "
            f"{f'in groups of {format.group}' if format.group else 'with a scale a row'}; name --dequantize to "
            "quantize its values again"
        )
    return StoredPart(source, False, format.group), StoredPart(source, True, format.group)


def check_readable(source: Any, name: str) -> None:
    """Raises RecipeError when the values of a tensor would have to be made of codes, unasked."""
    stored = _format_of(source, name)
    if stored is not None and not getattr(source, "dequantize", False):
        raise RecipeError(f"'{name}' is quantized ({stored}), the engine needs its values; name --dequantize")


def _format_of(source: Any, name: str) -> Any:
    look_up = getattr(source, "stored_format", None)
    return look_up(name) if look_up else None
