"""Kernels on mma.sync, ldmatrix and cp.async, which every GPU since sm_80 has."""

from __future__ import annotations

from typing import Any

from mlir import ir

from llmc.passes import PLAIN, PassRunner

from ..chips import Chip
from ..gpu import attention_merge
from ..gpu.attention_merge import Workspace
from ..gpu.body import Body
from ..gpu.compiled import SIMPLE, Built, compile_simple, lower_built, texts
from ..gpu.linear_body import LinearBody
from ..gpu.lowering import Lowered, lower
from ..kernel import CompiledKernel, Launch, UnsupportedKernel, Variant
from . import attention, attention_decode, linear
from .attention_decode import Splits


def compile_kernel(kernel_op: Any, chip: Chip, limits: dict[str, int], runner: PassRunner = PLAIN) -> CompiledKernel:
    """One kernel for `chip`. Raises UnsupportedKernel for what these kernels cannot do."""
    name = Body(kernel_op).name
    anchor = ir.StringAttr(kernel_op.attributes["anchor"]).value
    if anchor == "linear":
        return _linear(kernel_op, name, chip, limits, runner)
    if anchor == "attention":
        return _attention(kernel_op, name, chip, limits, runner)
    if anchor not in SIMPLE:
        raise UnsupportedKernel(f"@{name}: {chip.arch} has no kernel of kind '{anchor}'")
    return compile_simple(kernel_op, name, anchor, runner, chip)


def _linear(kernel_op: Any, name: str, chip: Chip, limits: dict[str, int], runner: PassRunner) -> CompiledKernel:
    """A tile for each range of token counts; the largest also serves all above its own."""
    variants: list[Variant] = []
    lowered: list[Lowered] = []
    max_tokens, first, n = limits["max_num_tokens"], 1, LinearBody(Body(kernel_op)).n
    for config in linear.CONFIGS:
        if first > max_tokens:
            break
        last = None if config is linear.CONFIGS[-1] or config.tokens >= max_tokens else config.tokens
        built = linear.build(kernel_op, config, config.stages(n, last or max_tokens, chip))
        code, launch = lower_built(built, name + config.suffix, runner, chip)
        variants.append(Variant((launch,), first, last))
        lowered.append(code)
        first = config.tokens + 1
    return CompiledKernel(name, "linear", tuple(variants), texts(lowered))


DECODES = (
    (4, Splits(most=32, least=2)),
    (16, Splits(most=16, least=4)),
    (64, Splits(most=8, least=8)),
)
"""(last token count, splits of the keys). The fewer tokens, the more splits it takes to occupy the GPU."""


def _attention(kernel_op: Any, name: str, chip: Chip, limits: dict[str, int], runner: PassRunner) -> CompiledKernel:
    """Few tokens: splits of the keys and a merge, whose ranges share their code; more: tiles alone."""
    variants: list[Variant] = []
    lowered: dict[str, Lowered] = {}

    def launch(built: Built, suffix: str) -> Launch:
        kernel, grid, arguments = built
        if suffix not in lowered:
            lowered[suffix] = lower(kernel, name + suffix, runner, chip)
        return Launch(lowered[suffix].entry, (grid[0], grid[1], grid[2]), tuple(arguments))

    max_tokens, first = limits["max_num_tokens"], 1
    for last, splits in DECODES:
        if first > max_tokens:
            break
        workspace = Workspace.of(kernel_op, min(last, max_tokens), splits.most)
        pair = (
            launch(attention_decode.build(kernel_op, splits, workspace), "_decode"),
            launch(attention_merge.build(kernel_op, workspace), "_merge"),
        )
        variants.append(Variant(pair, first, None if last >= max_tokens else last, workspace.bytes))
        first = last + 1
    if first <= max_tokens:
        variants.append(Variant((launch(attention.build(kernel_op), ""),), first))
    return CompiledKernel(name, "attention", tuple(variants), texts(list(lowered.values())))
