"""Codes and scales of a matrix: what `#llm.codes` and `#llm.scales` (dialects/llm/LlmAttrs.td) mean.

Symmetric, round to nearest even, one scale for `group` consecutive columns of a row.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from llmc.compiler.recipe_error import RecipeError
from llmc.errors import ModelError

#: MLIR name of a code type -> its largest value whose negative it has too.
LIMITS = {"f8E4M3FN": 448.0, "i8": 127.0, "i4": 7.0}

#: The smallest normal float32: a group of zeros has a scale that can be divided by.
LEAST_SCALE = np.float32(2.0**-126)


@dataclasses.dataclass(frozen=True)
class CodeFormat:
    """type: MLIR name of the codes' type; group: columns that share a scale, 0 for whole rows; zeros: whether each
    scale has a zero point beside it, which only a checkpoint can bring along."""

    type: str
    group: int
    zeros: bool = False

    def __post_init__(self) -> None:
        if self.type not in LIMITS:
            raise RecipeError(f"codes of type {self.type}: expected one of {', '.join(LIMITS)}")

    @functools.cached_property
    def dtype(self) -> np.dtype:
        """NumPy's type of the codes; 4-bit codes are int8 within -7..7."""
        if self.type == "f8E4M3FN":
            import ml_dtypes

            return np.dtype(ml_dtypes.float8_e4m3fn)
        return np.dtype(np.int8)

    def scale_shape(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """[N, groups] of an [N, K] matrix. Raises RecipeError when groups do not divide K."""
        if len(shape) != 2:
            raise RecipeError(f"only matrices are quantized, found shape {list(shape)}")
        rows, columns = shape
        if self.group and columns % self.group:
            raise RecipeError(f"groups of {self.group} do not divide the {columns} columns of {list(shape)}")
        return rows, columns // self.group if self.group else 1


def quantize_rows(rows: np.ndarray, format: CodeFormat) -> tuple[np.ndarray, np.ndarray]:
    """Codes [n, K] and float32 scales [n, groups] of float rows [n, K].

    scale = max(|w|) / limit over the group, at least 2^-126; code = w / scale, rounded.
    Raises ModelError when a value is infinite or NaN: no scale could represent the others.
    """
    if format.zeros:
        raise RecipeError("zero points come from checkpoints that store them; this one has none")
    groups = format.scale_shape(rows.shape)[1]
    grouped = rows.astype(np.float32, copy=False).reshape(rows.shape[0], groups, -1)
    scales = np.abs(grouped).max(axis=2) / np.float32(LIMITS[format.type])
    if not np.isfinite(scales).all():
        raise ModelError(
            f"cannot quantize a weight with infinite or NaN values: {int((~np.isfinite(rows)).sum())} "
            f"of {rows.size} values in one block of rows; repair the checkpoint or leave the layer out (--exclude)"
        )
    scales = np.maximum(scales, LEAST_SCALE)
    scaled = grouped / scales[:, :, None]
    if format.dtype.kind == "i":
        scaled = np.rint(scaled)
    # Division may end one rounding above the limit, which f8E4M3FN would turn into NaN only at 464.
    return scaled.astype(format.dtype).reshape(rows.shape), scales
