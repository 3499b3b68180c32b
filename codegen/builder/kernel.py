"""Builds one `tile.kernel`, op by op, from plain Python.

    k = KernelBuilder("copy", threads=256)
    src, dst, n = k.arguments(src=t.ptr(t.f32()), dst=t.ptr(t.f32()), n=t.i32())
    with k.body():
        k.for_each(0, n, lambda i: k.store(k.load(src, i, count=4), dst, i), vector=4)
    module = k.module

Regions are `with` blocks, or functions where a loop carries values. Nothing is rewritten and
nothing is cached: each call builds its op where it stands, with the caller's file and line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlir import ir
from mlir.dialects import scf

from llmc.dialects import tile

from . import types as t
from .location import here
from .matrix import MatrixOps
from .values import Operand, Value, constant, enum, i32, one_or_all, values

Body = Callable[..., Any]


class KernelBuilder(MatrixOps):
    """One kernel in one module.

    Must be used inside an MLIR context that knows the dialects (`llmc.dialects.register`).
    """

    def __init__(
        self,
        name: str,
        threads: int,
        *,
        pdl: bool = False,
        min_blocks: int | None = None,
        cluster: int | None = None,
    ):
        self.name = name
        self._location = here()
        with self._location:
            self.module = ir.Module.create()
            with ir.InsertionPoint(self.module.body):
                self.kernel = tile.KernelOp(name, threads, pdl=pdl or None, min_blocks=min_blocks, cluster=cluster)
        self._block: ir.Block = self.kernel.regions[0].blocks.append()
        self.pdl = pdl

    def arguments(self, **parameters: ir.Type) -> list[Value]:
        """Declares the kernel's parameters, in order; returns their values."""
        return [Value(self._block.add_argument(type_, here())) for type_ in parameters.values()]

    @contextmanager
    def body(self) -> Iterator[None]:
        with self._location, ir.InsertionPoint(self._block):
            yield
            tile.YieldOp([])

    # -- control flow ----------------------------------------------------------------------

    @contextmanager
    def role(self, name: str, warps: int, *, regs: int | None = None, elected: bool = False) -> Iterator[None]:
        """What `warps` warps of the block do; `elected`: one thread of them."""
        op = tile.RoleOp(name, warps, regs=regs, elected=elected or None, loc=here())
        with ir.InsertionPoint(op.regions[0].blocks.append()):
            yield
            tile.YieldOp([])

    @contextmanager
    def if_(self, condition: Value) -> Iterator[None]:
        op = scf.IfOp(condition.ir, loc=here())
        with ir.InsertionPoint(op.then_block):
            yield
            scf.YieldOp([])

    def if_else(self, condition: Value, then: Body, otherwise: Body, results: Sequence[ir.Type]) -> Any:
        """`scf.if` with results: both bodies return one value for each type."""
        op = scf.IfOp(condition.ir, list(results), has_else=True, loc=here())
        for block, body in ((op.then_block, then), (op.else_block, otherwise)):
            with ir.InsertionPoint(block):
                scf.YieldOp([v.ir for v in values(body())])
        return one_or_all(op.results)

    def for_(self, lower: Operand, upper: Operand, step: Operand, body: Body, init: Sequence[Value] = ()) -> Any:
        """`scf.for` over i32; `body(index, *carried)` returns the next carried values."""
        bounds = [i32(bound).ir for bound in (lower, upper, step)]
        op = scf.ForOp(*bounds, [v.ir for v in init], loc=here())
        with ir.InsertionPoint(op.body):
            carried = [Value(v) for v in op.inner_iter_args]
            scf.YieldOp([v.ir for v in values(body(Value(op.induction_variable), *carried))])
        return one_or_all(op.results)

    def while_(self, condition: Body, body: Body, init: Sequence[Value]) -> Any:
        """`scf.while`: `condition(*state)` returns i1, `body(*state)` the next state."""
        types = [v.type for v in init]
        op = scf.WhileOp(types, [v.ir for v in init], loc=here())
        before = op.regions[0].blocks.append(*types)
        after = op.regions[1].blocks.append(*types)
        with ir.InsertionPoint(before):
            state = [Value(v) for v in before.arguments]
            scf.ConditionOp(condition(*state).ir, [v.ir for v in state])
        with ir.InsertionPoint(after):
            scf.YieldOp([v.ir for v in values(body(*(Value(v) for v in after.arguments)))])
        return one_or_all(op.results)

    def for_each(
        self,
        lower: Operand,
        upper: Operand,
        body: Body,
        init: Sequence[Value] = (),
        *,
        vector: int = 1,
        scope: str | None = None,
    ) -> Any:
        """Deals the indexes to the threads of the scope, `vector` neighbours at a time."""
        op = tile.ForEachOp(
            [v.type for v in init],
            i32(lower).ir,
            i32(upper).ir,
            [v.ir for v in init],
            vector=vector,
            scope=enum("scope", scope) if scope else None,
            loc=here(),
        )
        block = op.regions[0].blocks.append(t.i32(), *[v.type for v in init])
        with ir.InsertionPoint(block):
            index, *carried = (Value(v) for v in block.arguments)
            tile.YieldOp([v.ir for v in values(body(index, *carried))])
        return one_or_all(op.results)

    # -- scalars ---------------------------------------------------------------------------

    def i32(self, number: Operand) -> Value:
        return i32(number)

    def zero(self, type_: ir.Type) -> Value:
        return constant(0, type_)

    def f32(self, number: float) -> Value:
        return constant(number, t.f32())

    def program_id(self, axis: str = "x") -> Value:
        return Value(tile.ProgramIdOp(enum("axis", axis), results=[t.i32()], loc=here()).result)

    def num_programs(self, axis: str = "x") -> Value:
        return Value(tile.NumProgramsOp(enum("axis", axis), results=[t.i32()], loc=here()).result)

    def cluster_rank(self) -> Value:
        """Index of the block in its cluster of two."""
        return Value(tile.ClusterRankOp(results=[t.i32()], loc=here()).result)

    def thread_index(self) -> Value:
        return Value(tile.ThreadIndexOp(results=[t.i32()], loc=here()).result)

    def uniform(self, value: Value) -> Value:
        """The first lane's value of an i32: lets loops and descriptors use uniform registers."""
        return Value(tile.UniformOp(value.ir, results=[t.i32()], loc=here()).result)

    # -- memory ----------------------------------------------------------------------------

    def load(
        self,
        memory: Value,
        *indices: Operand,
        count: int = 1,
        condition: Value | None = None,
        cache: str | None = None,
    ) -> Value:
        """Scalar or vector of `count` elements; zero where the condition is false."""
        type_ = t.vector(count, _element(memory.type))
        op = tile.LoadOp(
            type_,
            memory.ir,
            [i32(i).ir for i in indices],
            condition=condition.ir if condition is not None else None,
            cache=enum("cache", cache) if cache else None,
            loc=here(),
        )
        return Value(op.result)

    def store(self, value: Value, memory: Value, *indices: Operand, condition: Value | None = None) -> None:
        tile.StoreOp(
            value.ir,
            memory.ir,
            [i32(i).ir for i in indices],
            condition=condition.ir if condition is not None else None,
            loc=here(),
        )

    def atomic_add(self, value: Value, memory: Value, index: Value) -> None:
        """Adds to global memory, in no order with other accesses."""
        tile.AtomicOp(value.type, enum("atomic", "add"), value.ir, memory.ir, index.ir, relaxed=True, loc=here())

    def same_address(self, a: Value, b: Value) -> Value:
        """Whether two pointers point to the same place."""
        return Value(tile.SameAddressOp(a.ir, b.ir, results=[t.i1()], loc=here()).result)

    def atomic(self, kind: str, value: Value, memory: Value, index: Operand) -> Value:
        """`add`, `max` or `exchange` in global memory, acquire and release; gives the old value."""
        op = tile.AtomicOp(value.type, enum("atomic", kind), value.ir, memory.ir, i32(index).ir, loc=here())
        return Value(op.old)

    def shared(self, type_: ir.Type, *, per_warpgroup: bool = False, buffers: int = 1) -> Value:
        op = tile.SharedOp(type_, per_warpgroup=per_warpgroup or None, buffers=buffers, loc=here())
        return Value(op.tile)

    # -- threads ---------------------------------------------------------------------------

    def reduce(self, kind: str, *values: Value, scope: str | None = None) -> Any:
        """`add`, `max`, `min` of one value, or `argmax` of (value, index), over the scope."""
        op = tile.ReduceOp(
            [v.type for v in values],
            enum("reduce", kind),
            [v.ir for v in values],
            scope=enum("scope", scope) if scope else None,
            loc=here(),
        )
        return one_or_all(op.results)

    def barrier(self, scope: str | None = None) -> None:
        tile.BarrierOp(scope=enum("scope", scope) if scope else None, loc=here())

    def pdl_wait(self) -> None:
        """Waits for the predecessors; nothing where the kernel is not under PDL."""
        if self.pdl:
            tile.PdlWaitOp(loc=here())

    def pdl_launch(self) -> None:
        if self.pdl:
            tile.PdlLaunchOp(loc=here())


def _element(memory: ir.Type) -> ir.Type:
    """Element type of a `!tile.ptr` or `!tile.smem`."""
    # Their parameters are not visible through MLIR's C API.
    inner = str(memory).split("<", 1)[1].rsplit(">", 1)[0].split(",")[0]
    return ir.Type.parse(inner.rsplit("x", 1)[-1])
