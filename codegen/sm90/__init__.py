"""Kernels for sm_90 (Hopper): one generator for each kind of `llm.kernel`.

    kernels = compile_kernels(module, target, limits, runner)

Each generator is a module with `build(kernel_op, ...)`, which returns the tile kernel, its grid
and its arguments; this file chooses configurations and token ranges, and lowers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mlir import ir

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
    with module.context, ir.Location.unknown():
        for op in module.body.operations:
            if op.operation.name == "llm.kernel":
                yield compile_kernel(op, limits, runner)


def compile_kernel(kernel_op: Any, limits: dict[str, int], runner: PassRunner = PLAIN) -> CompiledKernel:
    body = Body(kernel_op)
    anchor = ir.StringAttr(kernel_op.attributes["anchor"]).value
    if anchor == "linear":
        return _linear(kernel_op, limits, runner)
    if anchor == "attention":
        return _attention(kernel_op, limits, runner)
    if anchor not in _SIMPLE:
        raise UnsupportedKernel(f"@{body.name}: sm_90 has no kernel of kind '{anchor}'")
    lowered, launch = _lower(_SIMPLE[anchor](kernel_op), body.name, runner)
    return CompiledKernel(body.name, anchor, (Variant((launch,)),), _texts([lowered]))


RANGES = (128, 256, 512, 1024, 2048, 4096)
"""Token counts at which the persistent kernel changes its tile, where a better one exists."""


def _linear(kernel_op: Any, limits: dict[str, int], runner: PassRunner) -> CompiledKernel:
    """Few tokens: a kernel for each width; more: the persistent one, with the tile for the range."""
    linear = LinearBody(Body(kernel_op))
    max_tokens = limits["max_num_tokens"]
    variants: list[Variant] = []
    lowered: list[Lowered] = []

    def add(built: Built, name: str, first: int, last: int) -> None:
        code, launch = _lower(built, name, runner)
        variants.append(Variant((launch,), first, None if last >= max_tokens else last))
        lowered.append(code)

    first = 1
    for width in linear_small.WIDTHS:
        if first <= max_tokens and linear_small.serves(linear.n, width):
            config = linear_small.choose(linear.n, linear.k, width, linear.glu is not None)
            add(linear_small.build(kernel_op, config), linear.body.name + config.suffix, first, width)
            first = width + 1
    for large, last in _ranges(linear.n, first, max_tokens):
        suffix = f"_n{large.block_n}"
        add(linear_large.build(kernel_op, large, suffix), linear.body.name + suffix, first, last)
        first = last + 1
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


def _ranges(n: int, first: int, max_tokens: int) -> list[tuple[linear_large.Config, int]]:
    """(configuration, last token count) of consecutive ranges from `first` on, merged where equal."""
    found: list[tuple[linear_large.Config, int]] = []
    for last in (*(r for r in RANGES if first <= r < max_tokens), max_tokens):
        if last < first:
            break
        config = linear_large.choose(n, last)
        if found and found[-1][0] == config:
            found.pop()
        found.append((config, last))
    return found


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
