"""How the elements of a weight are stored for the kernels: `layout` of `llm.parameter`."""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from llmc.compiler.recipe_error import RecipeError
from llmc.compiler.recipes import Shape


@dataclasses.dataclass(frozen=True)
class RowMajor:
    """As is."""

    #: Chunks of rows begin at multiples of this.
    row_multiple: int = 1

    def stored_shape(self, shape: Shape) -> Shape:
        return shape

    def store(self, rows: np.ndarray) -> np.ndarray:
        """A chunk of rows in its stored order."""
        return rows


@dataclasses.dataclass(frozen=True)
class Panels:
    """`#llm.panels<rows = R, group = G>` of an [N, K] weight.

    Stored as [ceil(N / R), ceil(K / G), R, G], padded with zeros. With `pairs`, G is 2 and the two
    4-bit integers of a group share a byte, the first in its low half: [ceil(N / R), ceil(K / 2), R].
    """

    rows: int
    group: int
    pairs: bool = False

    @property
    def row_multiple(self) -> int:
        return self.rows

    def stored_shape(self, shape: Shape) -> Shape:
        if len(shape) != 2:
            raise RecipeError(f"layout panels needs a matrix, found shape {list(shape)}")
        panels = (-(-shape[0] // self.rows), -(-shape[1] // self.group), self.rows)
        return panels if self.pairs else (*panels, self.group)

    def store(self, rows: np.ndarray) -> np.ndarray:
        panels, groups = self.stored_shape(rows.shape)[:2]
        padding = (panels * self.rows - rows.shape[0], groups * self.group - rows.shape[1])
        if any(padding):
            rows = np.pad(rows, [(0, padding[0]), (0, padding[1])])
        panelled = rows.reshape(panels, self.rows, groups, self.group).transpose(0, 2, 1, 3)
        if not self.pairs:
            return panelled
        codes = panelled.astype(np.uint8) & 15
        return codes[..., 0] | codes[..., 1] << 4


@dataclasses.dataclass(frozen=True)
class Words:
    """`words<bits = B>`: 32 / B neighbouring codes of a row in an int32, the first in its lowest bits.

    Stored as [N, ceil(K / (32 / B))], each code plus half of its range. Of checkpoints in the layout of
    compressed-tensors, not of kernels.
    """

    bits: int
    row_multiple: int = 1

    def stored_shape(self, shape: Shape) -> Shape:
        if len(shape) != 2:
            raise RecipeError(f"layout words needs a matrix, found shape {list(shape)}")
        return shape[0], -(-shape[1] * self.bits // 32)

    def store(self, rows: np.ndarray) -> np.ndarray:
        count, words = self.stored_shape(rows.shape)
        per = 32 // self.bits
        unsigned = np.zeros((count, words * per), np.uint32)
        unsigned[:, : rows.shape[1]] = rows.astype(np.int32) + (1 << (self.bits - 1))
        places = np.arange(per, dtype=np.uint32) * np.uint32(self.bits)
        return np.bitwise_or.reduce(unsigned.reshape(count, words, per) << places, axis=2).view(np.int32)


Layout = RowMajor | Panels | Words

_WORDS = re.compile(r"words<bits = (4|8)>")
_PANELS = re.compile(r"#llm\.panels<\s*rows\s*=\s*(\d+)\s*,\s*group\s*=\s*(\d+)\s*>")


def parse_layout(text: str | None, pairs: bool = False) -> Layout:
    """Reads the assembly of a layout attribute; None is row-major. pairs: of 4-bit integers."""
    if text is None:
        if pairs:
            raise RecipeError("4-bit integers need a layout in which two neighbours share a byte")
        return RowMajor()
    if match := _WORDS.fullmatch(text):
        return Words(int(match.group(1)))
    match = _PANELS.fullmatch(text.strip())
    if match is None:
        raise RecipeError(f"unknown layout {text}")
    rows, group = map(int, match.groups())
    if pairs and group != 2:
        raise RecipeError(f"4-bit integers lie in groups of 2, found {text}")
    return Panels(rows, group, pairs)
