"""Runs single host kernels: compiles a module's `llm.kernel`s and calls their entries."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from mlir import ir
from mlir.passmanager import PassManager

from llmc.codegen.host import compile_kernels, layout_passes
from llmc.codegen.kernel import CompiledKernel
from llmc.compiler.layouts import parse_layout
from llmc.compiler.plan import evaluate
from llmc.compiler.targets import Target, find_target
from llmc.dialects import register
from support.execute import DTYPES, Array, Batch

Operand = Array | Batch | tuple[Array, ...]


class HostKernels:
    """The kernels of a module, in a loaded library. Weights get the layouts that the target wants."""

    def __init__(self, text: str, target: Target | None = None) -> None:
        target = target or find_target("host")
        self.kernels: dict[str, CompiledKernel] = {}
        self._results: dict[str, list[tuple[Any, list[int | None]]]] = {}
        self._layouts: dict[str, list[str | None]] = {}
        self._pairs: dict[str, list[bool]] = {}
        with register(ir.Context()), ir.Location.unknown():
            module = ir.Module.parse(text)
            passes = ",".join(layout_passes(target))
            PassManager.parse(f"builtin.module({passes})").run(module.operation)
            for op in module.body.operations:
                if op.operation.name == "llm.kernel":
                    self._describe(op)
            for kernel in compile_kernels(module, target, {}):
                self.kernels[kernel.name] = kernel
        code = next(iter(self.kernels.values())).variants[0].launches[0].entry.code
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name, "host.so")
        path.write_bytes(code.data)
        self.library = ctypes.CDLL(str(path))

    def _describe(self, op: Any) -> None:
        name = ir.StringAttr(op.operation.attributes["sym_name"]).value
        type = ir.FunctionType(ir.TypeAttr(op.operation.attributes["function_type"]).value)
        self._results[name] = []
        for result in map(ir.RankedTensorType, type.results):
            shape = [None if result.is_dynamic_dim(i) else result.get_dim_size(i) for i in range(result.rank)]
            self._results[name].append((DTYPES[str(result.element_type)], shape))
        layouts: list[str | None] = [None] * len(type.inputs)
        if "arg_attrs" in op.operation.attributes:
            for i, attrs in enumerate(ir.ArrayAttr(op.operation.attributes["arg_attrs"])):
                given = ir.DictAttr(attrs)
                layouts[i] = str(given["llm.layout"]) if "llm.layout" in given else None
        self._layouts[name] = layouts
        self._pairs[name] = [str(type).endswith("xi4>") for type in type.inputs]

    def pack(self, name: str, *operands: Operand) -> list[Operand]:
        """Operands with weights stored as the kernel reads them."""
        rows = zip(operands, self._layouts[name], self._pairs[name], strict=True)
        return [
            np.ascontiguousarray(parse_layout(layout, pairs).store(operand))
            if layout and isinstance(operand, np.ndarray)
            else operand
            for operand, layout, pairs in rows
        ]

    def run(self, name: str, *operands: Operand, rows: int) -> list[Array]:
        """One launch; outputs start as NaN so that what is not written shows."""
        packed = self.pack(name, *operands)
        results = [
            np.full([rows if size is None else size for size in shape], np.nan).astype(dtype)
            for dtype, shape in self._results[name]
        ]
        slots, entry, tiles = self.bind(name, packed, results, rows)
        for tile in reversed(range(tiles)):
            entry(ctypes.byref(slots), tile)
        return results

    def bind(self, name: str, packed: list[Operand], results: list[Array], rows: int) -> tuple[Any, Any, int]:
        """`args` of a launch, its entry and the number of its tiles. The arrays must outlive the calls."""
        (launch,) = self.kernels[name].variants[0].launches
        batch = next((operand for operand in packed if isinstance(operand, Batch)), None)
        sizes = {"rows": rows}
        if batch is not None:
            sizes |= {"S": len(batch.kv_len), "B": batch.block_table.shape[1]}
        slots = (ctypes.c_uint64 * len(launch.arguments))()
        for i, argument in enumerate(launch.arguments):
            if "i32" in argument:
                slots[i] = evaluate(argument["i32"], sizes)
            elif "result" in argument:
                slots[i] = results[argument["result"]].ctypes.data
            else:
                slots[i] = _address(packed[argument["operand"]], argument.get("part"))
        entry = self.library[launch.entry.name]
        entry.argtypes, entry.restype = [ctypes.c_void_p, ctypes.c_int64], None
        return slots, entry, int(np.prod([evaluate(size, sizes) for size in launch.grid]))


def _address(operand: Operand, part: str | None) -> int:
    if isinstance(operand, Batch):
        operand = getattr(operand, str(part))
    elif isinstance(operand, tuple):
        operand = operand["kv".index(str(part))]
    assert isinstance(operand, np.ndarray)
    assert operand.flags.c_contiguous
    return operand.ctypes.data
