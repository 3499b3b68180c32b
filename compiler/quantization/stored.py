"""Linears that a checkpoint brings along quantized: what the passes must assign so that they stay as they are."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from llmc.compiler.progress import SILENT, Progress
from llmc.compiler.quantization.formats import QuantizationFormat, find_format, formats_of
from llmc.compiler.quantization.marks import linear_parameters
from llmc.compiler.targets import Target
from llmc.errors import ModelError, OptionError

if TYPE_CHECKING:
    from mlir import ir

    from llmc.frontends import Checkpoint
    from llmc.frontends.checkpoint.quantized.description import StoredFormat


@dataclasses.dataclass(frozen=True)
class Assignment:
    """One run of llm-assign-quantization: `format` for all linears but those of `exclude`."""

    format: QuantizationFormat
    exclude: tuple[str, ...]
    lm_head: bool


def stored_assignments(
    module: ir.Module, tensors: dict[str, str], checkpoint: Checkpoint, target: Target
) -> tuple[Assignment, ...]:
    """One assignment for each format of the checkpoint; none where nothing is quantized.

    module:  of the frontend. tensors: checkpoint tensor of each parameter.
    Raises ModelError for a layer that the target cannot run as it is stored, with the alternatives.
    """
    quantized = set(checkpoint.quantized_names())
    if not quantized:
        return ()
    linears = linear_parameters(module)
    used = {tensors[symbol]: symbol for symbol in linears if symbol in tensors}
    if elsewhere := sorted(quantized - used.keys()):
        raise ModelError(
            f"{len(elsewhere)} quantized tensors are no linears of the model ('{elsewhere[0]}', ...); only linears "
            f"have kernels for codes: {_REMEDY}"
        )
    by_format: dict[QuantizationFormat, set[str]] = {}
    for name in sorted(quantized):
        stored = checkpoint.stored_format(name)
        assert stored is not None
        if used[name].endswith(".transposed"):
            raise ModelError(f"'{name}' is quantized and stored as [in, out]: {_REMEDY}")
        by_format.setdefault(_runnable(name, stored, target), set()).add(used[name])
    return tuple(
        Assignment(format, tuple(symbol for symbol in linears if symbol not in symbols), lm_head=True)
        for format, symbols in by_format.items()
    )


def check_values(checkpoint: Checkpoint, progress: Progress = SILENT) -> list[str]:
    """Reads scales, zero points and orders of all quantized layers; returns warnings.

    Raises ModelError for the first that cannot be right. Reads about a hundredth of the checkpoint.
    """
    layers = len(checkpoint.quantized_names())
    if not layers:
        return []
    with progress.task("checking scales", layers, "layers") as advance:
        return checkpoint.check_values(advance)


_REMEDY = "--dequantize compiles the values of the layers instead, stored as --dtype says"


def _runnable(name: str, stored: StoredFormat, target: Target) -> QuantizationFormat:
    """The format of ours that multiplies exactly what is stored."""
    inputs = stored.inputs
    kind = (stored.weight, f"{inputs.type} {inputs.scale}" if inputs else None)
    ours = None if stored.ordered or stored.blocks else _OURS.get(kind)
    if ours is not None and (stored.group == 0 or inputs is None):
        try:
            format = find_format(ours, target)
        except OptionError as error:
            raise ModelError(f"'{name}' is stored as {ours} ({stored}): {error}; {_REMEDY}") from None
        assert format is not None
        return format.stored_as(stored.group, stored.zeros)
    runs = ", ".join(formats_of(target)) or "no quantized linears"
    raise ModelError(
        f"'{name}' is quantized ({stored}), which target {target.name} does not run yet (it runs {runs}; groups and "
        f"zero points of integers too, activation order and blocks not): {_REMEDY}"
    )


#: Codes of weights, and codes and scales of inputs -> the format of ours with the same arithmetic.
_OURS = {
    ("f8E4M3FN", "f8E4M3FN token"): "fp8_rowwise",
    ("i8", None): "int8_wo",
    ("i4", None): "int4_wo",
}
