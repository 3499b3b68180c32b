"""The quantization formats of `--qformat`, and which targets run them."""

from __future__ import annotations

import dataclasses

from llmc.compiler.quantization.gate import Limits
from llmc.compiler.targets import Target
from llmc.errors import OptionError


@dataclasses.dataclass(frozen=True)
class QuantizationFormat:
    """One value of `--qformat`.

    name:    as typed; recorded in the manifest.
    weights: MLIR name of the type of the weights' codes.
    inputs:  that of the inputs' codes; None: inputs stay as they are.
    group:   in features that share a scale; 0: all of an out feature.
    zeros:   whether codes have zero points, as those of some checkpoints.
    limits:  what the quality gate lets pass, unless the user says otherwise.
    """

    name: str
    weights: str
    inputs: str | None
    group: int
    limits: Limits
    summary: str
    zeros: bool = False

    def stored_as(self, group: int, zeros: bool) -> QuantizationFormat:
        """The same as a checkpoint stores it, with other groups or zero points, which its name says."""
        name = self.name
        if group != self.group:
            name += f"_g{group}" if group else "_row"
        return dataclasses.replace(self, group=group, zeros=zeros, name=name + ("_zp" if zeros else ""))


# A few times what sound models show (docs/numerics.md), far below what a lost scale does.
_EIGHT_BITS, _FOUR_BITS = Limits(0.1, 0.7), Limits(0.8, 0.5)

_FORMATS = {
    format.name: format
    for format in (
        QuantizationFormat("fp8_rowwise", "f8E4M3FN", "f8E4M3FN", 0, _EIGHT_BITS,
                           "8-bit floats, a scale an out feature and a scale a token; no calibration"),
        QuantizationFormat("int8_wo", "i8", None, 0, _EIGHT_BITS,
                           "weights of 8-bit integers, a scale an out feature"),
        QuantizationFormat("int4_wo", "i4", None, 64, _FOUR_BITS,
                           "weights of 4-bit integers, a scale for 64 in features"),
    )
}  # fmt: skip

#: What users of other compilers type and llmc does not have yet.
_ABSENT = ("fp8", "fp8_block", "int8_sq", "int4_awq", "int4_gptq", "w4a8_awq", "nvfp4", "mxfp4")

#: Kind of target (a CPU, or the GPU's name) -> formats that its kernels run.
_ON_TARGET = {
    "cpu": ("fp8_rowwise", "int8_wo", "int4_wo"),
    "sm_90": (),
}


def known_formats() -> dict[str, str]:
    """Every value of `--qformat` with one line about it."""
    return {"none": "as --dtype says"} | {name: format.summary for name, format in _FORMATS.items()}


def find_format(name: str, target: Target) -> QuantizationFormat | None:
    """The format called `name`; None for "none". Raises OptionError, with the alternatives, when
    there is no such format or `target` cannot run it."""
    if name == "none":
        return None
    offered = ("none", *formats_of(target))
    if name in _FORMATS and name in offered:
        return _FORMATS[name]
    choices = f"target {target.name} takes {', '.join(offered)}"
    if name in _FORMATS:
        raise OptionError(f"--qformat {name}: {choices}; targets that run it: {', '.join(_targets_of(name))}")
    if name in _ABSENT:
        raise OptionError(f"--qformat {name} is not there yet: {choices}")
    raise OptionError(f"--qformat {name}: no such format; {choices}")


def formats_of(target: Target) -> tuple[str, ...]:
    """The formats that a target's kernels run."""
    # The kernels that every GPU has know no codes.
    portable = target.chip is not None and not target.chip.hopper
    return () if portable else _ON_TARGET.get("cpu" if target.is_cpu else target.name, ())


def _targets_of(name: str) -> list[str]:
    targets = {"cpu": "host and other CPUs"}
    return [targets.get(kind, kind) for kind, names in _ON_TARGET.items() if name in names]
