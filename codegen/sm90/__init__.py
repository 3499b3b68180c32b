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
from ..gpu.attention_merge import Workspace
from ..gpu.attention_tile import SLAB
from ..gpu.body import Body
from ..gpu.compiled import SIMPLE, compile_simple
from ..gpu.compiled import lower_built as _lower
from ..gpu.compiled import texts as _texts
from ..gpu.kv import KvLayer
from ..gpu.linear_body import LinearBody
from ..gpu.lowering import Lowered, lower
from ..kernel import CompiledKernel, Launch, UnsupportedKernel, Variant
from . import (
    attention,
    attention_decode,
    attention_walk,
    linear_large,
    linear_small,
)
from .attention_decode import Splits
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
    linear.check(float8=True)
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
    (4, attention_decode, Splits(most=32, least=2)),
    (16, attention_decode, Splits(most=16, least=4)),
    (32, attention_decode, Splits(most=24, least=8)),
    (64, attention_decode, Splits(most=8, least=16)),
    (512, attention_walk, Splits(most=8, least=16)),
)
"""(last token count, kernel, splits of the keys) of decode attention. The fewer tokens, the more splits it
takes to occupy the multiprocessors; with more tokens, blocks without work would cost. Above 512, tiles
alone are enough."""


def _attention(kernel_op: Any, limits: dict[str, int], runner: PassRunner) -> CompiledKernel:
    body = Body(kernel_op)
    head_dim = KvLayer.of(body.find("llm.paged_attention").operands[1]).head_dim
    variants: list[Variant] = []
    lowered: list[Lowered] = []
    max_tokens = limits["max_num_tokens"]
    config = attention_decode.choose(head_dim)
    decodes: dict[str, Lowered] = {}
    first = 1
    for last, module, splits in DECODES:
        if first > max_tokens:
            break
        workspace = Workspace.of(kernel_op, min(last, max_tokens), splits.most)
        kernel, grid, arguments = module.build(kernel_op, config, splits, workspace)
        if kernel.name not in decodes:
            # Ranges share their code: splits are grids and arguments.
            decodes[kernel.name] = lower(kernel, kernel.name, runner)
        launch = Launch(decodes[kernel.name].entry, (grid[0], grid[1], grid[2]), tuple(arguments))
        variants.append(Variant((launch,), first, last, workspace.bytes, zeroed_bytes=4 * workspace.rows))
        first = last + 1
    lowered.extend(decodes.values())
    if first <= limits["max_num_tokens"]:
        code, launch = _lower(attention.build(kernel_op, attention.choose(head_dim)), body.name, runner)
        variants.append(Variant((launch,), first))
        lowered.append(code)
    return CompiledKernel(body.name, "attention", tuple(variants), _texts(lowered))
