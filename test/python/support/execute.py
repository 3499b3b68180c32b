"""Runs llm modules of any stage by their meaning, `convert-llm-to-linalg`.

    step = Executable(text)
    logits = step(tokens, positions, weights=weights)[0]
    logits = step(tokens, positions, rows, batch, cache, weights=weights)[0]

Arrays are NumPy arrays (bf16 and f8 of ml_dtypes) and must have the element type
that the module declares. A `Batch` or `Cache` argument stands for the handle of
the same name; the cache is written in place. Memory of a call is freed at its
end, not before: meant for short inputs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from mlir import ir
from mlir.dialects import func
from mlir.execution_engine import ExecutionEngine
from mlir.passmanager import PassManager

from llmc.dialects import register

Array = np.ndarray[Any, np.dtype[Any]]

PIPELINE = """builtin.module(
  func.func(convert-elementwise-to-linalg, linalg-fuse-elementwise-ops),
  eliminate-empty-tensors, empty-tensor-to-alloc-tensor,
  one-shot-bufferize{allow-return-allocs-from-loops bufferize-function-boundaries
                     function-boundary-type-conversion=identity-layout-map},
  func.func(llvm-request-c-wrappers, host-expand-copies, convert-linalg-to-loops),
  lower-affine, expand-strided-metadata, lower-affine, convert-scf-to-cf,
  arith-expand{include-bf16=true}, convert-math-to-llvm, convert-math-to-libm,
  finalize-memref-to-llvm{use-generic-functions=true}, convert-arith-to-llvm,
  convert-index-to-llvm, convert-func-to-llvm, convert-cf-to-llvm, reconcile-unrealized-casts)"""

DTYPES: dict[str, Any] = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "i64": np.int64,
    "i32": np.int32,
    "i8": np.int8,
}


@dataclass
class Batch:
    """The arrays of `!llm.batch`."""

    query_start: Array
    kv_len: Array
    block_table: Array
    slots: Array

    @staticmethod
    def ragged(new: Sequence[int], past: Sequence[int], block: int, blocks_per_seq: int) -> Batch:
        """Sequences with `new` rows in this step after `past` cached ones.

        Block 0 stays unused and blocks are handed out in reverse, so that no test
        passes by treating the cache as contiguous.
        """
        count = len(new)
        table = np.arange(count * blocks_per_seq, 0, -1, dtype=np.int32).reshape(count, blocks_per_seq)
        slots = [
            table[s, p // block] * block + p % block for s in range(count) for p in range(past[s], past[s] + new[s])
        ]
        return Batch(
            np.concatenate([[0], np.cumsum(new)]).astype(np.int32),
            np.add(new, past).astype(np.int32),
            table,
            np.array(slots, np.int32),
        )

    @property
    def positions(self) -> Array:
        new = np.diff(self.query_start)
        pairs = zip(self.kv_len, new, strict=True)
        return np.concatenate([np.arange(k - n, k) for k, n in pairs]).astype(np.int32)

    def arrays(self) -> list[Array]:
        return [self.query_start, self.kv_len, self.block_table, self.slots]


@dataclass
class Cache:
    """K and V pools of each layer, `[num_blocks, heads, block, dim]`."""

    layers: list[tuple[Array, ...]] = field(default_factory=list)

    @staticmethod
    def zeros(layers: int, num_blocks: int, heads: int, block: int, dim: int, dtype: Any = np.float32) -> Cache:
        shape = (num_blocks, heads, block, dim)
        return Cache([(np.zeros(shape, dtype), np.zeros(shape, dtype)) for _ in range(layers)])

    def arrays(self) -> list[Array]:
        return [pool for layer in self.layers for pool in layer]

    def copy(self) -> Cache:
        return Cache([tuple(pool.copy() for pool in layer) for layer in self.layers])


class _Arena:
    """Gives the compiled code memory and takes all of it back at once."""

    def __init__(self) -> None:
        self.blocks: list[Any] = []
        self.alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(self._alloc)
        self.aligned_alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)(
            lambda _, size: self._alloc(size)
        )
        self.free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)

    def _alloc(self, size: int) -> int:
        block = np.empty(size + 64, np.uint8)
        self.blocks.append(block)
        return int(block.ctypes.data + 63) // 64 * 64

    def register(self, engine: ExecutionEngine) -> None:
        for name in ("alloc", "aligned_alloc", "free"):
            address = ctypes.cast(getattr(self, name), ctypes.c_void_p)
            engine.raw_register_runtime(f"_mlir_memref_to_llvm_{name}", address)


def _descriptor_type(rank: int) -> type[ctypes.Structure]:
    fields: list[tuple[str, Any]] = [
        ("allocated", ctypes.c_void_p),
        ("aligned", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
    ]
    if rank:
        fields += [("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)]
    return type("Descriptor", (ctypes.Structure,), {"_fields_": fields})


def _describe(array: Array) -> ctypes.Structure:
    descriptor = _descriptor_type(array.ndim)
    base = array.ctypes.data
    if not array.ndim:
        return descriptor(base, base, 0)
    strides = [s // array.itemsize for s in array.strides]
    sizes = ctypes.c_int64 * array.ndim
    return descriptor(base, base, 0, sizes(*array.shape), sizes(*strides))


def _read(descriptor: Any, dtype: Any, rank: int) -> Array:
    shape = tuple(descriptor.sizes) if rank else ()
    strides = tuple(s * np.dtype(dtype).itemsize for s in descriptor.strides) if rank else ()
    if 0 in shape:
        return np.empty(shape, dtype)
    last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    size = last + np.dtype(dtype).itemsize
    raw = (ctypes.c_byte * size).from_address(descriptor.aligned)
    start = descriptor.offset * np.dtype(dtype).itemsize
    view: Array = np.ndarray(shape, dtype, buffer=raw, offset=start, strides=strides)
    return view.copy()


@dataclass(frozen=True)
class _Slot:
    """An argument or result of the lowered function."""

    dtype: Any
    shape: tuple[int | None, ...]
    parameter: str | None = None

    @staticmethod
    def of(type: ir.Type, parameter: str | None = None) -> _Slot:
        shaped = ir.ShapedType(type)
        shape = tuple(None if shaped.is_dynamic_dim(i) else shaped.get_dim_size(i) for i in range(shaped.rank))
        return _Slot(np.dtype(DTYPES[str(shaped.element_type)]), shape, parameter)

    def check(self, what: str, array: Array) -> Array:
        fits = len(self.shape) == array.ndim and all(
            want in (None, have) for want, have in zip(self.shape, array.shape, strict=True)
        )
        if array.dtype != self.dtype or not fits:
            raise TypeError(
                f"{what} is {array.dtype}{list(array.shape)}, the module takes {self.dtype}{list(self.shape)}"
            )
        return np.ascontiguousarray(array) if array.ndim else array


def _protect_arguments(entry: func.FuncOp) -> None:
    """Tells bufferization that tensors belong to the caller."""
    attrs = []
    for i, type in enumerate(entry.type.inputs):
        own = {a.name: a.attr for a in entry.arg_attrs[i]} if "arg_attrs" in entry.attributes else {}
        if isinstance(type, ir.RankedTensorType):
            own["bufferization.writable"] = ir.BoolAttr.get(False)
        attrs.append(ir.DictAttr.get(own))
    entry.arg_attrs = ir.ArrayAttr.get(attrs)


class Executable:
    """A function of an llm module, compiled."""

    def __init__(self, module: str | ir.Module, function: str = "step") -> None:
        self.function = function
        with register(ir.Context()) as context, ir.Location.unknown():
            context.allow_unregistered_dialects = False
            parsed = ir.Module.parse(str(module))
            PassManager.parse("builtin.module(convert-llm-to-linalg)").run(parsed.operation)
            entry = self._entry(parsed)
            self.arguments, self.results = self._signature(entry)
            _protect_arguments(entry)
            PassManager.parse(PIPELINE).run(parsed.operation)
            self.engine = ExecutionEngine(parsed, opt_level=2)
        self.arena = _Arena()
        self.arena.register(self.engine)

    def _entry(self, module: ir.Module) -> func.FuncOp:
        for op in module.body.operations:
            if isinstance(op, func.FuncOp) and op.name.value == self.function:
                return op
        raise ValueError(f"the module has no function @{self.function}")

    @staticmethod
    def _signature(entry: func.FuncOp) -> tuple[list[_Slot], list[_Slot]]:
        """Arguments and results as tensors and memrefs, before bufferization."""
        names: list[str | None] = [None] * len(entry.type.inputs)
        if "arg_attrs" in entry.attributes:
            for i, attrs in enumerate(entry.arg_attrs):
                if "llm.parameter" in attrs:
                    names[i] = ir.FlatSymbolRefAttr(attrs["llm.parameter"]).value
        inputs = zip(entry.type.inputs, names, strict=True)
        return [_Slot.of(*i) for i in inputs], [_Slot.of(t) for t in entry.type.results]

    @property
    def parameters(self) -> list[str]:
        """Names of the weights it needs, in order."""
        return [slot.parameter for slot in self.arguments if slot.parameter]

    def __call__(self, *inputs: Array | Batch | Cache, weights: Mapping[str, Array] | None = None) -> list[Array]:
        arrays: list[Array] = []
        for value in inputs:
            arrays += value.arrays() if isinstance(value, (Batch, Cache)) else [value]
        weights = weights or {}
        missing = [name for name in self.parameters if name not in weights]
        if missing:
            raise KeyError(f"no value for the weights {missing}")
        arrays += [weights[name] for name in self.parameters]
        if len(arrays) != len(self.arguments):
            raise TypeError(f"{len(arrays)} arrays for {len(self.arguments)} arguments")
        pairs = zip(self.arguments, arrays, strict=True)
        arrays = [slot.check(slot.parameter or f"argument {i}", a) for i, (slot, a) in enumerate(pairs)]
        return self._invoke(arrays)

    def _invoke(self, arrays: list[Array]) -> list[Array]:
        arguments = [ctypes.pointer(_describe(array)) for array in arrays]
        # One struct with the descriptor of each result is the first argument.
        types = [_descriptor_type(len(slot.shape)) for slot in self.results]
        layout = [(f"r{i}", t) for i, t in enumerate(types)]
        results = type("Results", (ctypes.Structure,), {"_fields_": layout})()
        pointers: list[Any] = [ctypes.pointer(results)] if self.results else []
        try:
            self.engine.invoke(self.function, *map(ctypes.pointer, pointers + arguments))
            return [
                _read(getattr(results, f"r{i}"), slot.dtype, len(slot.shape)) for i, slot in enumerate(self.results)
            ]
        finally:
            self.arena.blocks.clear()


def assert_same_meaning(
    before: str | ir.Module,
    after: str | ir.Module,
    *inputs: Array | Batch | Cache,
    weights: Mapping[str, Array] | None = None,
    weights_after: Mapping[str, Array] | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-5,
) -> None:
    """Both modules compute the same results and leave the same cache.

    Give `weights_after` where the pass changed parameters (merged, transposed).
    """
    outcomes = []
    for module, given in ((before, weights), (after, weights_after or weights)):
        own = [value.copy() if isinstance(value, Cache) else value for value in inputs]
        results = Executable(module)(*own, weights=given)
        caches = [pool for value in own if isinstance(value, Cache) for pool in value.arrays()]
        outcomes.append([np.asarray(a, np.float64) for a in results + caches])
    for want, have in zip(*outcomes, strict=True):
        np.testing.assert_allclose(have, want, rtol=rtol, atol=atol)
