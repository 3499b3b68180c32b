"""Kernels for sm_90 (Hopper): one generator for each kind of `llm.kernel`.

    kernels = compile_kernels(module, target, limits, runner)

Each generator is a module with `build(kernel_op, ...)`, which returns the tile kernel, its grid
and its arguments; this file chooses configurations and token ranges, and lowers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mlir import ir

from llmc.errors import CompileError
from llmc.passes import PLAIN, PassRunner

from ..builder import KernelBuilder
from ..gpu import attention_merge, elementwise, embedding, norm, rope_append, rope_table, sample
from ..gpu.attention_merge import Workspace
from ..gpu.body import Body
from ..gpu.kv import KvLayer
from ..gpu.linear_body import LinearBody
from ..gpu.lowering import Lowered, lower
from ..kernel import Argument, CompiledKernel, Expression, Launch, UnsupportedKernel, Variant
from . import (
    attention,
    attention_combine,
    attention_decode,
    attention_split,
    linear_large,
    linear_small,
)
from .attention_decode import Splits
from .attention_schedule import Splitting
from .chip import HOPPER, Chip
from .linear_schedule import LinearProblem, Schedule, ranges
from .schedule_table import ScheduleTable, load, shipped

Built = tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]

_SIMPLE: dict[str, Callable[[Any], Built]] = {
    "elementwise": elementwise.build,
    "embedding": embedding.build,
    "norm": norm.build,
    "rope_append": rope_append.build,
    "rope_table": rope_table.build,
    "sample": sample.build,
}


def layout_passes(target: Any) -> list[str]:
    """None: weights are stored as the passes before left them."""
    return []


def compile_kernels(
    module: ir.Module, target: Any, limits: dict[str, int], runner: PassRunner = PLAIN
) -> Iterator[CompiledKernel]:
    """See `llmc.codegen.kernel.CodeGenerator`; tensor maps of activations have `max_num_tokens` rows."""
    chip = Chip.of(target)
    table = shipped() if target.schedules is None else load(target.schedules)
    if table.arch != target.arch:
        raise CompileError(f"{target.schedules}: expected schedules for {target.arch}, found {table.arch}")
    with module.context, ir.Location.unknown():
        for op in module.body.operations:
            if op.operation.name == "llm.kernel":
                yield compile_kernel(op, limits, runner, chip, table)


def compile_kernel(
    kernel_op: Any,
    limits: dict[str, int],
    runner: PassRunner = PLAIN,
    chip: Chip = HOPPER,
    table: ScheduleTable | None = None,
) -> CompiledKernel:
    """table: measured schedules; None: those that llmc ships."""
    body = Body(kernel_op)
    anchor = ir.StringAttr(kernel_op.attributes["anchor"]).value
    if anchor == "linear":
        return _linear(kernel_op, limits, runner, chip, table or shipped())
    if anchor == "attention":
        return _attention(kernel_op, limits, runner)
    if anchor not in _SIMPLE:
        raise UnsupportedKernel(f"@{body.name}: sm_90 has no kernel of kind '{anchor}'")
    lowered, launch = _lower(_SIMPLE[anchor](kernel_op), body.name, runner)
    return CompiledKernel(body.name, anchor, (Variant((launch,)),), _texts([lowered]))


def _linear(
    kernel_op: Any, limits: dict[str, int], runner: PassRunner, chip: Chip, table: ScheduleTable
) -> CompiledKernel:
    """A kernel for each range of token counts, merged where neighbours have the same schedule."""
    linear = LinearBody(Body(kernel_op))
    problem = LinearProblem.of(linear)
    chosen: list[tuple[Schedule, int, int]] = []
    for first, last in ranges(limits["max_num_tokens"]):
        schedule = table.choose(problem, last, chip)
        if chosen and chosen[-1][0] == schedule:
            first = chosen.pop()[1]
        chosen.append((schedule, first, last))
    variants: list[Variant] = []
    lowered: list[Lowered] = []
    for schedule, first, last in chosen:
        suffix = f"_t{last}"
        built = (
            linear_small.build(kernel_op, schedule, suffix, chip)
            if isinstance(schedule, linear_small.Config)
            else linear_large.build(kernel_op, schedule, suffix, chip)
        )
        code, launch = _lower(built, linear.body.name + suffix, runner)
        variants.append(Variant((launch,), first, None if last >= limits["max_num_tokens"] else last))
        lowered.append(code)
    return CompiledKernel(linear.body.name, "linear", tuple(variants), _texts(lowered))


DECODES = (
    (4, Splits(most=32, least=2)),
    (16, Splits(most=16, least=4)),
    (32, Splits(most=24, least=8)),
    (64, Splits(most=8, least=16)),
)
"""(last token count, splits of the keys) of decode attention, a block a split. The fewer tokens, the
more splits it takes to occupy the multiprocessors; with more tokens, blocks without work would cost."""
SPLITTING = (512, Splitting(min_pages=16, max_splits=8))
"""Up to so many tokens, blocks that walk over a schedule. Above, tiles alone are enough."""


def _attention(kernel_op: Any, limits: dict[str, int], runner: PassRunner) -> CompiledKernel:
    body = Body(kernel_op)
    head_dim = KvLayer.of(body.find("llm.paged_attention").operands[1]).head_dim
    variants: list[Variant] = []
    lowered: list[Lowered] = []
    max_tokens = limits["max_num_tokens"]
    decodes: dict[str, Lowered] = {}

    def launch_decode(built: Built, name: str) -> Launch:
        # The ranges share their code: splits are grids and arguments.
        kernel, grid, arguments = built
        if name not in decodes:
            decodes[name] = lower(kernel, name, runner)
        return Launch(decodes[name].entry, (grid[0], grid[1], grid[2]), tuple(arguments))

    first = 1
    for last, splits in DECODES:
        if first > max_tokens:
            break
        workspace = Workspace.of(kernel_op, min(last, max_tokens), splits.most)
        pair = (
            launch_decode(attention_decode.build(kernel_op, splits, workspace), body.name + "_decode"),
            launch_decode(attention_merge.build(kernel_op, workspace), body.name + "_merge"),
        )
        variants.append(Variant(pair, first, last, workspace.bytes))
        first = last + 1
    lowered.extend(decodes.values())
    last, splitting = SPLITTING
    if first <= max_tokens:
        config = attention_split.choose(head_dim, splitting, last)
        launches = []
        for module, suffix in ((attention_split, f"_split{last}"), (attention_combine, f"_combine{last}")):
            code, launch = _lower(module.build(kernel_op, config, suffix), body.name + suffix, runner)
            launches.append(launch)
            lowered.append(code)
        size = attention_split.workspace_bytes(kernel_op, config)
        variants.append(Variant(tuple(launches), first, last, size))
        first = last + 1
    if first <= limits["max_num_tokens"]:
        code, launch = _lower(attention.build(kernel_op), body.name, runner)
        variants.append(Variant((launch,), first))
        lowered.append(code)
    return CompiledKernel(body.name, "attention", tuple(variants), _texts(lowered))


def _lower(built: Built, name: str, runner: PassRunner) -> tuple[Lowered, Launch]:
    kernel, grid, arguments = built
    lowered = lower(kernel, name, runner)
    return lowered, Launch(lowered.entry, (grid[0], grid[1], grid[2]), tuple(arguments))


def _texts(lowered: list[Lowered]) -> dict[str, str]:
    """One text a level; kernels of several variants follow one another."""
    join = "\n// -----\n\n".join
    return {
        "tile": join(code.tile for code in lowered),
        "llvm": join(code.llvm for code in lowered),
        "ptx": "\n".join(code.ptx for code in lowered),
    }
