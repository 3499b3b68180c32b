"""Codes, scales and zero points that a checkpoint stores already, as sources for the recipes over its tensors."""

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
    """One part of every tensor of a quantized checkpoint, in place of its values.

    part: "codes" [N, K], "scales" or "zeros" [N, K / group]. Rows of all are out features, so that recipes that move
    whole rows mean the same over each.
    """

    source: Any
    part: str
    group: int

    def names(self) -> list[str]:
        return self.source.names()

    def shape(self, name: str) -> tuple[int, ...]:
        rows, columns = self.source.shape(name)
        if self.part == "codes":
            return rows, columns
        return rows, columns // self.group if self.group else 1

    def read(self, name: str, rows: slice | None = None) -> np.ndarray:
        read = getattr(self.source, f"stored_{self.part}")
        return read(name, slice(None) if rows is None else rows)


def has_stored(source: Any, names: Iterable[str], format: CodeFormat) -> bool:
    """Whether the checkpoint has these tensors as codes of `format`; False where codes are to be made of values: of a
    checkpoint that is not quantized, and of one that is to be dequantized.

    Raises RecipeError when they are stored in another format.
    """
    if getattr(source, "dequantize", False):
        return False
    formats = {name: _format_of(source, name) for name in names}
    if not any(formats.values()):
        return False
    wanted = (format.type, format.group, format.zeros)
    for name, stored in formats.items():
        fits = stored is not None and (stored.weight, stored.group, stored.zeros) == wanted
        if fits and not (stored.ordered or stored.blocks):
            continue
        raise RecipeError(
            f"'{name}' is {f'quantized ({stored})' if stored else 'not quantized'}, the engine needs {format.type} "
            f"{f'in groups of {format.group}' if format.group else 'with a scale a row'}"
            f"{' and zero points' if format.zeros else ''}; name --dequantize to quantize its values again"
        )
    return True


def check_readable(source: Any, name: str) -> None:
    """Raises RecipeError when the values of a tensor would have to be made of codes, unasked."""
    stored = _format_of(source, name)
    if stored is not None and not getattr(source, "dequantize", False):
        raise RecipeError(f"'{name}' is quantized ({stored}), the engine needs its values; name --dequantize")


def _format_of(source: Any, name: str) -> Any:
    look_up = getattr(source, "stored_format", None)
    return look_up(name) if look_up else None
