"""Reshapes, transposes, slices and concatenation."""

from __future__ import annotations

import sys
from typing import Any

from mlir import ir
from mlir.dialects import tensor as tensor_dialect

from llmc.frontends.convert.builder import Builder
from llmc.frontends.convert.registry import lowers
from llmc.frontends.convert.torch_op import TorchOp
from llmc.frontends.convert.values import (
    DynamicSize,
    Operand,
    Shape,
    Tensor,
    Weight,
    folded,
    is_folded_shape,
    static_shape,
)
from llmc.frontends.errors import FrontendError


@lowers(
    "aten.view",
    "aten.reshape",
    "aten._unsafe_view",
    "aten.unsqueeze",
    "aten.squeeze",
    "aten.squeeze.dim",
    "aten.flatten.using_ints",
    "aten.unflatten.int",
)
def _reshape(builder: Builder, op: TorchOp, operand: Operand, *_: object) -> Any:
    # The result type says it all.
    return builder.reshape(builder.read(operand), op.result.shape)


def _permute(builder: Builder, operand: Tensor | Weight, permutation: list[int], shape: Shape) -> Any:
    if isinstance(operand, Weight):
        if permutation == [1, 0]:
            return Weight(operand.name, operand.stored_shape, not operand.transposed)
        operand = builder.read(operand)
    if is_folded_shape(operand.shape) and permutation[0] == 0:
        inner = [source - 1 for source in permutation[1:]]
        return Tensor(builder.transpose(operand.value, inner), shape)
    return builder.folding(builder.transpose(builder.unfolded(operand), permutation), shape)


@lowers("aten.transpose.int")
def _transpose(builder: Builder, op: TorchOp, operand: Operand, first: int, second: int) -> Any:
    permutation = list(range(len(operand.shape)))
    permutation[first], permutation[second] = permutation[second], permutation[first]
    return _permute(builder, operand, permutation, op.result.shape)


@lowers("aten.t", "aten.numpy_T")
def _t(builder: Builder, op: TorchOp, operand: Operand) -> Any:
    return _permute(builder, operand, list(range(len(operand.shape)))[::-1], op.result.shape)


@lowers("aten.permute")
def _permute_dims(builder: Builder, op: TorchOp, operand: Operand, dims: list[int]) -> Any:
    rank = len(operand.shape)
    return _permute(builder, operand, [dim % rank for dim in dims], op.result.shape)


@lowers("aten.expand", "aten.broadcast_to")
def _expand(builder: Builder, op: TorchOp, operand: Operand, *_: object) -> Any:
    operand = builder.read(operand)
    if operand.shape == op.result.shape:
        return operand
    return builder.expand(operand, op.result.shape)


@lowers("aten.expand_as")
def _expand_as(builder: Builder, op: TorchOp, operand: Operand, other: Operand) -> Any:
    operand = builder.read(operand)
    return builder.expand(operand, op.result.shape, like=[builder.read(other)])


@lowers("aten.repeat_interleave.self_int")
def _repeat_interleave(
    builder: Builder,
    op: TorchOp,
    operand: Operand,
    repeats: int,
    dim: int | None = None,
    output_size: int | None = None,
) -> Any:
    operand = builder.read(operand)
    if dim is None:
        raise FrontendError("repeat_interleave without a dimension")
    dim %= len(operand.shape)
    before, after = operand.shape[: dim + 1], operand.shape[dim + 1 :]
    spread = builder.reshape(operand, (*before, 1, *after))
    return builder.reshape(builder.expand(spread, (*before, repeats, *after)), op.result.shape)


@lowers("aten.repeat")
def _repeat(builder: Builder, op: TorchOp, operand: Operand, repeats: list[int]) -> Any:
    operand = builder.read(operand)
    source = (1,) * (len(repeats) - len(operand.shape)) + operand.shape
    spread: list[int | None] = []
    single: list[int | None] = []
    for times, size in zip(repeats, source, strict=True):
        single += [size] if times == 1 else [1, size]
        spread += [size] if times == 1 else [times, size]
    repeated = builder.expand(builder.reshape(operand, tuple(single)), tuple(spread))
    return builder.reshape(repeated, op.result.shape)


@lowers("aten.slice.Tensor")
def _slice(
    builder: Builder, op: TorchOp, operand: Operand, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    operand = builder.read(operand)
    dim %= len(operand.shape)
    size = operand.shape[dim]
    start = 0 if start is None else start
    end = sys.maxsize if end is None else end
    if size is None or isinstance(end, DynamicSize) or isinstance(start, DynamicSize):
        whole = start == 0 and step == 1 and (end == DynamicSize() or end == sys.maxsize)
        if whole:
            return operand
        raise FrontendError("takes part of the tokens")
    if start == 0 and step == 1 and op.result.shape == operand.shape:
        return operand
    begin = min(max(start + size if start < 0 else start, 0), size)
    return builder.slice(operand, dim, begin, static_shape(op.result.shape[dim : dim + 1])[0], step)


@lowers("aten.narrow")
def _narrow(builder: Builder, op: TorchOp, operand: Operand, dim: int, start: Any, length: int) -> Any:
    return _slice(builder, op, operand, dim, start, start + length)


@lowers("aten.select.int")
def _select(builder: Builder, op: TorchOp, operand: Operand, dim: int, index: int) -> Any:
    operand = builder.read(operand)
    dim %= len(operand.shape)
    size = operand.shape[dim]
    if size is None:
        raise FrontendError("takes one of the tokens")
    taken = builder.slice(operand, dim, index % size, 1)
    return builder.reshape(taken, op.result.shape)


def _pieces(builder: Builder, operand: Operand, sizes: list[int], dim: int) -> Any:
    operand = builder.read(operand)
    dim %= len(operand.shape)
    pieces, start = [], 0
    for size in sizes:
        pieces.append(builder.slice(operand, dim, start, size))
        start += size
    return pieces


@lowers("aten.split_with_sizes", "aten.split.sizes")
def _split_with_sizes(builder: Builder, op: TorchOp, operand: Operand, sizes: list[int], dim: int = 0) -> Any:
    return _pieces(builder, operand, sizes, dim)


@lowers("aten.split.Tensor")
def _split(builder: Builder, op: TorchOp, operand: Operand, size: int, dim: int = 0) -> Any:
    total = _static(operand, dim)
    return _pieces(builder, operand, [min(size, total - start) for start in range(0, total, size)], dim)


@lowers("aten.chunk")
def _chunk(builder: Builder, op: TorchOp, operand: Operand, chunks: int, dim: int = 0) -> Any:
    return _split(builder, op, operand, -(-_static(operand, dim) // chunks), dim)


@lowers("aten.unbind.int")
def _unbind(builder: Builder, op: TorchOp, operand: Operand, dim: int = 0) -> Any:
    total = _static(operand, dim)
    dim %= len(operand.shape)
    shape = operand.shape[:dim] + operand.shape[dim + 1 :]
    return [builder.reshape(piece, shape) for piece in _pieces(builder, operand, [1] * total, dim)]


def _static(operand: Operand, dim: int) -> int:
    size = operand.shape[dim]
    if size is None:
        raise FrontendError("splits the tokens")
    return size


@lowers("aten.cat")
def _cat(builder: Builder, op: TorchOp, operands: list[Operand], dim: int = 0) -> Any:
    dim %= len(op.result.shape)
    # A model without partial rotation still joins the part that does not rotate, which is empty.
    parts = [builder.read(operand) for operand in operands if operand.shape[dim] != 0]
    return _concatenate(builder, parts, dim, op.result.shape)


@lowers("aten.stack")
def _stack(builder: Builder, op: TorchOp, operands: list[Operand], dim: int = 0) -> Any:
    shape = op.result.shape
    dim %= len(shape)
    single = (*shape[:dim], 1, *shape[dim + 1 :])
    return _concatenate(builder, [builder.reshape(builder.read(operand), single) for operand in operands], dim, shape)


def _concatenate(builder: Builder, operands: list[Tensor], dim: int, shape: Shape) -> Any:
    if len(operands) == 1:
        return operands[0]
    if shape[dim] is None:
        raise FrontendError("joins tensors along the tokens")
    if dim == 0:
        values, position = [builder.unfolded(operand) for operand in operands], 0
        result = shape
    else:
        values, position = [operand.value for operand in operands], dim - is_folded_shape(shape)
        result = folded(shape)
    element = ir.RankedTensorType(values[0].type).element_type
    value = tensor_dialect.ConcatOp(builder.type(result, element), position, values).result
    return builder.folding(value, shape) if dim == 0 else Tensor(value, shape)
