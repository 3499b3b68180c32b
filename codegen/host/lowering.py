"""From `llm.kernel` to LLVM IR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir import ir
from mlir.dialects.llvm import translate_module_to_llvmir

from llmc.codegen.kernel import Argument, UnsupportedKernel
from llmc.passes import PLAIN, PassRunner


def tile_passes(vector_bits: int) -> list[str]:
    """Kernels to functions of a tile index."""
    return [
        f"host-lower-linear{{vector-bits={vector_bits}}}",
        f"host-lower-attention{{vector-bits={vector_bits}}}",
        "host-tile-rows",
    ]


def loop_passes() -> list[str]:
    """The bodies of row kernels to loops over buffers on the stack."""
    return [
        "convert-llm-to-linalg",
        "func.func(convert-elementwise-to-linalg,canonicalize,linalg-fuse-elementwise-ops,cse)",
        "eliminate-empty-tensors",
        "empty-tensor-to-alloc-tensor",
        "one-shot-bufferize",
        "canonicalize",
        "cse",
        "func.func(buffer-loop-hoisting,promote-buffers-to-stack{max-alloc-size-in-bytes=1048576 "
        "max-rank-of-allocated-memref=8},host-expand-copies,convert-linalg-to-loops)",
    ]


def llvm_passes() -> list[str]:
    """Loops, vectors and buffers to the LLVM dialect."""
    return [
        "host-expand-math",
        "lower-affine",
        "expand-strided-metadata",
        "lower-affine",
        "canonicalize",
        "cse",
        "convert-scf-to-cf",
        "arith-expand{include-bf16=true}",
        "convert-math-to-llvm",
        "convert-math-to-libm",
        "convert-vector-to-llvm",
        "finalize-memref-to-llvm",
        "convert-arith-to-llvm",
        "convert-index-to-llvm",
        "convert-func-to-llvm",
        "convert-cf-to-llvm",
        "reconcile-unrealized-casts",
    ]


@dataclass(frozen=True)
class Lowered:
    """All kernels of a module."""

    @dataclass(frozen=True)
    class Entry:
        """What the attributes of a lowered kernel say; see passes/host/Entry.h."""

        name: str
        anchor: str
        rows_per_tile: int
        column_tiles: int
        arguments: tuple[Argument, ...]

    entries: tuple[Entry, ...]
    llvm_dialect: str
    llvm_ir: str


def lower_kernels(module: ir.Module, vector_bits: int, runner: PassRunner = PLAIN) -> Lowered:
    """Lowers every `llm.kernel` of `module`, which stays as it is.

    Raises UnsupportedKernel when a pass that makes tile programs refuses one, and InternalError when
    a later pass fails.
    """
    with module.context, ir.Location.unknown():
        kernels = ir.Module.create()
        for op in module.body.operations:
            if op.operation.name == "llm.kernel":
                kernels.body.append(op.operation.clone())
        runner.run(kernels, "codegen/tiles", tile_passes(vector_bits), lambda _, reasons: UnsupportedKernel(reasons))
        entries = tuple(_entry(op) for op in kernels.body.operations if op.operation.name == "func.func")
        runner.run(kernels, "codegen/llvm", loop_passes() + llvm_passes())
        text = kernels.operation.get_asm()
        return Lowered(entries, text, translate_module_to_llvmir(kernels.operation))


def _entry(op: Any) -> Lowered.Entry:
    attributes = op.operation.attributes
    return Lowered.Entry(
        name=ir.StringAttr(attributes["sym_name"]).value,
        anchor=ir.StringAttr(attributes["host.anchor"]).value,
        rows_per_tile=ir.IntegerAttr(attributes["host.rows_per_tile"]).value,
        column_tiles=ir.IntegerAttr(attributes["host.column_tiles"]).value,
        arguments=tuple(_argument(row) for row in ir.ArrayAttr(attributes["host.arguments"])),
    )


def _argument(row: ir.Attribute) -> Argument:
    def value(attribute: ir.Attribute) -> int | str:
        if isinstance(attribute, ir.IntegerAttr):
            return int(attribute.value)
        return str(ir.StringAttr(attribute).value)

    return {named.name: value(named.attr) for named in ir.DictAttr(row)}
