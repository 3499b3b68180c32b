"""From a tile module to a cubin: `tile-to-nvvm`, LLVM's NVPTX back end, ptxas."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import gpu

from llmc.passes import PLAIN, PassRunner

from ..assemble import assemble
from ..builder import KernelBuilder
from ..chips import HOPPER, Chip
from ..kernel import CodeObject, Entry


@dataclass(frozen=True)
class Lowered:
    """An entry and its text at each level."""

    entry: Entry
    tile: str
    llvm: str
    ptx: str


def lower(kernel: KernelBuilder, name: str, runner: PassRunner = PLAIN, chip: Chip = HOPPER) -> Lowered:
    """Lowers and assembles one kernel for a chip.

    Raises `llmc.errors.InternalError`: when a verifier or a pass refuses it, with a file that replays it,
    and when ptxas does, or would make it slow.
    """
    module = kernel.module
    runner.verify(module, f"the tile module of {name}")
    tile_text = module.operation.get_asm(enable_debug_info=False)
    context = module.context
    with context, ir.Location.unknown():
        options = f"chip={chip.arch} features={chip.ptx_features} shared-memory={chip.shared_bytes}"
        runner.run(module, f"codegen/{name}", [f"tile-to-nvvm{{{options}}}"])
        llvm_text = str(module)
        (gpu_module,) = (op for op in module.body.operations if op.operation.name == "gpu.module")
        attributes = gpu_module.operation.attributes
        threads = ir.IntegerAttr(attributes["tile.threads"]).value
        shared = ir.IntegerAttr(attributes["tile.shared_memory"]).value
        pdl = "tile.pdl" in attributes
        cluster = ir.IntegerAttr(attributes["tile.cluster"]).value if "tile.cluster" in attributes else 1
        runner.run(module, f"codegen/{name}.ptx", ["gpu-module-to-binary{format=isa}"])
        (binary,) = (op for op in module.body.operations if op.operation.name == "gpu.binary")
        (object_,) = ir.ArrayAttr(binary.operation.attributes["objects"])
        ptx = bytes(gpu.ObjectAttr(object_).object).rstrip(b"\0").decode()
    assembly = assemble(ptx, chip.arch)
    usage = assembly.usage[name]
    entry = Entry(
        name=name,
        code=CodeObject("cubin", assembly.cubin),
        block=(threads, 1, 1),
        cluster=(cluster, 1, 1),
        shared_bytes=shared,
        pdl=pdl,
        registers=usage.registers,
        spill_bytes=usage.spill_bytes,
    )
    return Lowered(entry, tile_text, llvm_text, ptx)
