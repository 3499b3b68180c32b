"""Rings, TMA, tensor-core multiplies and fragments, as methods of the kernel builder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlir import ir

from llmc.dialects import tile

from . import types as t
from .location import here
from .values import Operand, Value, enum, i32, one_or_all, values


class MatrixOps:
    """What a kernel does with tiles; see docs/tile.md for the meaning of each op."""

    # -- rings and TMA ---------------------------------------------------------------------

    def ring(self, stages: int, *slots: ir.Type) -> Value:
        return Value(tile.RingOp(t.ring(stages, slots), loc=here()).ring)

    @contextmanager
    def produce(self, ring: Value, slots: Sequence[ir.Type], part: str | None = None) -> Iterator[list[Value]]:
        """Fills the next stage: `with k.produce(ring, slots) as (a, b): k.tma_load(...)`."""
        op = tile.ProduceOp(ring.ir, part=enum("part", part) if part else None, loc=here())
        block = op.regions[0].blocks.append(*slots)
        with ir.InsertionPoint(block):
            yield [Value(v) for v in block.arguments]
            tile.YieldOp([])

    def consume(
        self,
        ring: Value,
        slots: Sequence[ir.Type],
        body: Callable[..., Any],
        results: Sequence[ir.Type] = (),
        *,
        keep: int = 0,
    ) -> Any:
        """Uses the next stage: `body(*tiles)` returns one value for each result type."""
        op = tile.ConsumeOp(list(results), ring.ir, keep=keep, loc=here())
        block = op.regions[0].blocks.append(*slots)
        with ir.InsertionPoint(block):
            tile.YieldOp([v.ir for v in values(body(*(Value(v) for v in block.arguments)))])
        return one_or_all(op.results)

    def acquire(self, ring: Value, slots: Sequence[ir.Type]) -> Any:
        return one_or_all(tile.AcquireOp(list(slots), ring.ir, loc=here()).results)

    def release(self, ring: Value, *, keep: int = 0) -> None:
        tile.ReleaseOp(ring.ir, keep=keep, loc=here())

    def tma_load(self, map_: Value, coordinates: Sequence[Operand], into: Value, *, cache: str | None = None) -> None:
        tile.TmaLoadOp(
            map_.ir,
            [i32(c).ir for c in coordinates],
            into.ir,
            cache=enum("cache", cache) if cache else None,
            loc=here(),
        )

    def copy_async(
        self, memory: Value, at: tuple[Operand, Operand], into: Value, *, rows: Operand, columns: int
    ) -> None:
        """Copies a tile from (row, column) on of a row-major matrix; what lies outside `rows` x `columns` is zero."""
        row, column = (i32(x).ir for x in at)
        tile.CopyAsyncOp(memory.ir, row, column, i32(rows).ir, columns, into.ir, loc=here())

    def prefetch(self, map_: Value, coordinates: Sequence[Operand]) -> None:
        """Brings a box into the L2; for a role of one thread."""
        tile.PrefetchOp(map_.ir, [i32(c).ir for c in coordinates], loc=here())

    # -- shared tiles ----------------------------------------------------------------------

    def slice(self, tile_: Value, offsets: Sequence[int], result: ir.Type) -> Value:
        return Value(tile.SliceOp(result, tile_.ir, list(offsets), loc=here()).result)

    def warpgroup_slice(self, tile_: Value, step: int, result: ir.Type, *, clamped: bool = False) -> Value:
        return Value(tile.WarpgroupSliceOp(result, tile_.ir, step, clamped=clamped or None, loc=here()).result)

    def proxy_fence(self) -> None:
        tile.ProxyFenceOp(loc=here())

    # -- multiplies ------------------------------------------------------------------------

    def zero_acc(self, type_: ir.Type) -> Value:
        return Value(tile.ZeroAccOp(type_, loc=here()).acc)

    def wgmma(self, a: Value, b: Value, acc: Value, result: ir.Type, *, transpose_b: bool = False) -> Value:
        """Starts acc += a * b; the result is settled by `wgmma_wait` only."""
        return Value(tile.WgmmaOp(result, a.ir, b.ir, acc.ir, transpose_b=transpose_b or None, loc=here()).result)

    def wgmma_wait(self, accs: Sequence[Value], results: Sequence[ir.Type], *, pending: int = 0) -> Any:
        op = tile.WgmmaWaitOp(list(results), [a.ir for a in accs], pending=pending, loc=here())
        return one_or_all(op.results)

    def pin(self, fragment: Value) -> None:
        """Keeps the work that makes the fragment, which is not negative, above this point."""
        tile.PinOp(fragment.ir, loc=here())

    def mma(self, a: Sequence[Value], b: Value, acc: Sequence[Value], *, transpose_b: bool = False) -> Any:
        """acc + a * b for each `operand_a` fragment, which b, a shared tile, is read once for (mma.sync)."""
        results = [x.type for x in acc]
        op = tile.MmaOp(
            results, [x.ir for x in a], b.ir, [x.ir for x in acc], transpose_b=transpose_b or None, loc=here()
        )
        return one_or_all(op.results)

    def any(self, fragment: Value) -> Value:
        """Whether some row of the warp has a value other than zero, as an i1."""
        return Value(tile.AnyOp(fragment.ir, results=[t.i1()], loc=here()).result)

    def load_matrix(self, tile_: Value, type_: ir.Type) -> Value:
        """An `operand_a` fragment from a swizzled shared tile."""
        return Value(tile.LoadMatrixOp(type_, tile_.ir, loc=here()).result)

    # -- fragments -------------------------------------------------------------------------

    def fill(self, value: Value, type_: ir.Type) -> Value:
        return Value(tile.FillOp(type_, value.ir, loc=here()).result)

    def convert(self, fragment: Value, type_: ir.Type) -> Value:
        return Value(tile.ConvertOp(type_, fragment.ir, loc=here()).result)

    def row_reduce(self, kind: str, fragment: Value, type_: ir.Type, *, partial: bool = False) -> Value:
        op = tile.RowReduceOp(type_, enum("reduce", kind), fragment.ir, partial=partial or None, loc=here())
        return Value(op.result)

    def deinterleave(self, fragment: Value, half: ir.Type, *, rows: bool = False) -> tuple[Value, Value]:
        op = tile.DeinterleaveOp(half, half, fragment.ir, rows=rows or None, loc=here())
        return Value(op.even), Value(op.odd)

    def columns(self, fragment: Value, first: int, type_: ir.Type) -> Value:
        """The columns from `first` on, as many as the type has; no work."""
        return Value(tile.ColumnsOp(type_, fragment.ir, first, loc=here()).result)

    def cluster_reduce(self, fragment: Value, half: ir.Type) -> Value:
        """This block's half of the columns of the sum over the cluster."""
        return Value(tile.ClusterReduceOp(half, fragment.ir, loc=here()).result)

    def map(
        self,
        fragments: Sequence[Value],
        element_types: Sequence[ir.Type],
        body: Callable[..., Any],
        results: Sequence[ir.Type],
        *,
        at: tuple[Operand, Operand] | None = None,
    ) -> Any:
        """Elementwise: `body(*elements, row, column)`; `element_types` are what it sees."""
        row, column = (i32(x).ir for x in at) if at else (None, None)
        op = tile.MapOp(list(results), [f.ir for f in fragments], row=row, column=column, loc=here())
        block = op.regions[0].blocks.append(*element_types, t.i32(), t.i32())
        with ir.InsertionPoint(block):
            tile.YieldOp([v.ir for v in values(body(*(Value(v) for v in block.arguments)))])
        return one_or_all(op.results)

    def epilogue(
        self,
        fragments: Sequence[Value],
        element_types: Sequence[ir.Type],
        body: Callable[..., None],
        *,
        at: tuple[Operand, Operand] | None = None,
    ) -> None:
        """Visits every element: `body(*elements, row, column)` stores what it wants."""
        row, column = (i32(x).ir for x in at) if at else (None, None)
        op = tile.EpilogueOp([f.ir for f in fragments], row=row, column=column, loc=here())
        block = op.regions[0].blocks.append(*element_types, t.i32(), t.i32())
        with ir.InsertionPoint(block):
            body(*(Value(v) for v in block.arguments))
            tile.YieldOp([])

    def store_tma(
        self,
        fragment: Value,
        staging: Value,
        map_: Value,
        coordinates: Sequence[Operand],
        *,
        accumulate: bool = False,
    ) -> None:
        """`accumulate` adds the float32 elements to what is there."""
        at = [i32(c).ir for c in coordinates]
        tile.StoreTmaOp(fragment.ir, staging.ir, map_.ir, at, accumulate=accumulate or None, loc=here())

    # -- grid ------------------------------------------------------------------------------

    def raster(self, index: Value, rows: Value, columns: Value, group: int) -> tuple[Value, Value]:
        """Tile coordinates of a work index in grouped order."""
        op = tile.RasterOp(index.ir, rows.ir, columns.ir, group, results=[t.i32(), t.i32()], loc=here())
        return Value(op.row), Value(op.column)

    def warpgroup_index(self) -> Value:
        return Value(tile.WarpgroupIndexOp(results=[t.i32()], loc=here()).result)

    def warp_index(self) -> Value:
        return Value(tile.WarpIndexOp(results=[t.i32()], loc=here()).result)
