"""Kernels for sm_90 (Hopper) on wgmma and TMA; kinds that need neither are those of codegen/gpu.

Each generator is a module with `build(kernel_op, ...)`, which returns the tile kernel, its grid
and its arguments; this file chooses configurations and token ranges, and lowers.
"""

from __future__ import annotations

from typing import Any

from mlir import ir

from llmc.errors import CompileError
from llmc.passes import PLAIN, PassRunner

from ..chips import HOPPER, Chip
from ..gpu import attention_merge
from ..gpu.attention_merge import Workspace
from ..gpu.attention_tile import SLAB
from ..gpu.body import Body
from ..gpu.compiled import SIMPLE, Built, compile_simple
from ..gpu.compiled import lower_built as _lower
from ..gpu.compiled import texts as _texts
from ..gpu.kv import KvLayer
from ..gpu.linear_body import LinearBody
from ..gpu.lowering import Lowered, lower
from ..kernel import CompiledKernel, Launch, UnsupportedKernel, Variant
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
from .linear_schedule import LinearProblem, Schedule, ranges
from .schedule_table import ScheduleTable, load, shipped


def serves(kernel_op: Any) -> bool:
    """Whether these kernels take it: all but attention whose heads are no whole swizzle spans (80, 96, ...)."""
    if ir.StringAttr(kernel_op.attributes["anchor"]).value != "attention":
        return True
    return KvLayer.of(Body(kernel_op).find("llm.paged_attention").operands[1]).head_dim % SLAB == 0


def schedules_of(target: Any) -> ScheduleTable:
    """The measured schedules of a `llmc.compiler.targets.Target`. Raises CompileError for those of another GPU."""
    table = shipped() if target.schedules is None else load(target.schedules)
    if table.arch != target.arch:
        raise CompileError(f"{target.schedules}: expected schedules for {target.arch}, found {table.arch}")
    return table


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
    if anchor not in SIMPLE:
        raise UnsupportedKernel(f"@{body.name}: sm_90 has no kernel of kind '{anchor}'")
    return compile_simple(kernel_op, body.name, anchor, runner)


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
