"""From a built tile kernel to a launch, and the kinds of kernel that are the same on every GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llmc.passes import PLAIN, PassRunner

from ..builder import KernelBuilder
from ..chips import HOPPER, Chip
from ..kernel import Argument, CompiledKernel, Expression, Launch, Variant
from . import elementwise, embedding, norm, rope_append, rope_table, sample
from .lowering import Lowered, lower

Built = tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]
"""What a generator's `build` returns: the tile kernel, its grid and its arguments."""

SIMPLE: dict[str, Callable[[Any], Built]] = {
    "elementwise": elementwise.build,
    "embedding": embedding.build,
    "norm": norm.build,
    "rope_append": rope_append.build,
    "rope_table": rope_table.build,
    "sample": sample.build,
}
"""Kinds of one launch that serves every number of tokens."""


def compile_simple(
    kernel_op: Any, name: str, anchor: str, runner: PassRunner = PLAIN, chip: Chip = HOPPER
) -> CompiledKernel:
    """A kernel of a kind in SIMPLE."""
    lowered, launch = lower_built(SIMPLE[anchor](kernel_op), name, runner, chip)
    return CompiledKernel(name, anchor, (Variant((launch,)),), texts([lowered]))


def lower_built(built: Built, name: str, runner: PassRunner = PLAIN, chip: Chip = HOPPER) -> tuple[Lowered, Launch]:
    """Lowers and assembles what a generator built."""
    kernel, grid, arguments = built
    lowered = lower(kernel, name, runner, chip)
    return lowered, Launch(lowered.entry, (grid[0], grid[1], grid[2]), tuple(arguments))


def texts(lowered: list[Lowered]) -> dict[str, str]:
    """One text a level; kernels of several variants follow one another."""
    join = "\n// -----\n\n".join
    return {
        "tile": join(code.tile for code in lowered),
        "llvm": join(code.llvm for code in lowered),
        "ptx": "\n".join(code.ptx for code in lowered),
    }
