"""Kernels for CPUs: every `llm.kernel` of a module in one shared library.

    kernels = compile_kernels(module, target, limits, runner)

The passes of `passes/host` turn a kernel into `void entry(const uint64_t *args, int64_t tile)` and
say in attributes how to launch it; this package runs them, links the library, and describes the
launches. `layout_passes` must have run on the module before: they decide how weights are stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlir import ir

from llmc.codegen.host.library import build_library, vector_bits
from llmc.codegen.host.lowering import Lowered, lower_kernels
from llmc.codegen.kernel import CodeObject, CompiledKernel, Entry, Launch, Variant, ceildiv, mul
from llmc.passes import PLAIN, PassRunner

__all__ = ["compile_kernels", "layout_passes"]


def layout_passes(target: Any) -> list[str]:
    """Passes for an outlined module that choose the storage of weights."""
    return [f"host-choose-layouts{{rows={vector_bits(target) // 16}}}"]


def compile_kernels(
    module: ir.Module, target: Any, limits: dict[str, int], runner: PassRunner = PLAIN
) -> Iterator[CompiledKernel]:
    """See `llmc.codegen.kernel.CodeGenerator`. Limits are not used: host kernels take any number of tokens."""
    lowered = lower_kernels(module, vector_bits(target), runner)
    library = build_library(lowered.llvm_ir, target)
    code = CodeObject("host", library.data)
    for entry in lowered.entries:
        # One text for all kernels; `--emit` prints equal texts once.
        texts = {"llvm": lowered.llvm_dialect, "ptx": library.assembly}
        yield CompiledKernel(entry.name, entry.anchor, (Variant((_launch(entry, code),)),), texts)


def _launch(entry: Lowered.Entry, code: CodeObject) -> Launch:
    tiles = mul(ceildiv("rows", entry.rows_per_tile), entry.column_tiles)
    return Launch(Entry(entry.name, code), (tiles, 1, 1), entry.arguments)
