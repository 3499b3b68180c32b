"""The code generator of the NVIDIA targets: which package makes the kernels of a chip.

kernels = compile_kernels(module, target, limits, runner)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlir import ir

from llmc.passes import PLAIN, PassRunner

from .. import sm80, sm90
from ..chips import Chip
from ..kernel import CompiledKernel
from ..sm90.schedule_table import ScheduleTable


def layout_passes(target: Any) -> list[str]:
    """None: weights are stored as the passes before left them."""
    return []


def compile_kernels(
    module: ir.Module, target: Any, limits: dict[str, int], runner: PassRunner = PLAIN
) -> Iterator[CompiledKernel]:
    """See `llmc.codegen.kernel.CodeGenerator`; tensor maps of activations have `max_num_tokens` rows."""
    table = sm90.schedules_of(target) if target.chip.hopper else None
    with module.context, ir.Location.unknown():
        for op in module.body.operations:
            if op.operation.name == "llm.kernel":
                yield compile_kernel(op, target.chip, limits, runner, table)


def compile_kernel(
    kernel_op: Any,
    chip: Chip,
    limits: dict[str, int],
    runner: PassRunner = PLAIN,
    table: ScheduleTable | None = None,
) -> CompiledKernel:
    """One kernel for one chip: Hopper's own where they take it, else those of every GPU.

    table: measured schedules of Hopper's; None: those that llmc ships.
    """
    if chip.hopper and sm90.serves(kernel_op):
        return sm90.compile_kernel(kernel_op, limits, runner, chip, table)
    return sm80.compile_kernel(kernel_op, chip, limits, runner)
