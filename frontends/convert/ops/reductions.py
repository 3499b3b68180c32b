"""Reductions: `llm.reduce`, which keeps reduced dimensions."""

from __future__ import annotations

from typing import Any

from mlir.dialects import arith, math

from llmc.dialects import llm
from llmc.frontends.convert.builder import Builder
from llmc.frontends.convert.registry import lowers
from llmc.frontends.convert.torch_op import TorchOp
from llmc.frontends.convert.values import Operand, Tensor, folded, is_folded_shape
from llmc.frontends.errors import FrontendError


def _keeping(builder: Builder, kind: Any, operand: Tensor, dims: list[int]) -> Tensor:
    """The reduction with reduced dimensions of size 1."""
    rank = len(operand.shape)
    reduced = {dim % rank for dim in dims}
    if any(operand.shape[dim] is None for dim in reduced):
        raise FrontendError("reduces over the tokens")
    lead = is_folded_shape(operand.shape)
    shape = tuple(1 if dim in reduced else size for dim, size in enumerate(operand.shape))
    have = shape[1:] if lead else shape
    axes = sorted(dim - lead for dim in reduced if not (lead and dim == 0))
    value = llm.ReduceOp(builder.type(have, operand.element_type), kind, operand.value, axes).result
    return Tensor(builder.reshaped_value(value, have, folded(shape)), shape)


def _reduce(builder: Builder, op: TorchOp, kind: Any, operand: Operand, dims: list[int]) -> Tensor:
    return builder.reshape(_keeping(builder, kind, builder.read(operand), dims), op.result.shape)


@lowers("aten.mean.dim")
def _mean(
    builder: Builder, op: TorchOp, operand: Operand, dims: list[int], keepdim: bool = False, dtype: int | None = None
) -> Any:
    return _reduce(builder, op, llm.ReduceKind.Mean, operand, dims)


@lowers("aten.sum.dim_IntList")
def _sum(
    builder: Builder, op: TorchOp, operand: Operand, dims: list[int], keepdim: bool = False, dtype: int | None = None
) -> Any:
    return _reduce(builder, op, llm.ReduceKind.Sum, operand, dims)


@lowers("aten.amax")
def _amax(builder: Builder, op: TorchOp, operand: Operand, dims: list[int], keepdim: bool = False) -> Any:
    return _reduce(builder, op, llm.ReduceKind.Max, operand, dims)


@lowers("aten.var.correction")
def _var(
    builder: Builder, op: TorchOp, operand: Operand, dims: list[int], correction: float = 1, keepdim: bool = False
) -> Any:
    if correction != 0:
        raise FrontendError("variance with Bessel's correction")
    operand = builder.read(operand)
    kept = _keeping(builder, llm.ReduceKind.Mean, operand, dims)
    centred = builder.expand(kept, operand.shape, like=[operand])
    difference = arith.SubFOp(operand.value, centred.value).result
    squares = Tensor(arith.MulFOp(difference, difference).result, operand.shape)
    return _reduce(builder, op, llm.ReduceKind.Mean, squares, dims)


@lowers("aten.softmax.int")
def _softmax(builder: Builder, op: TorchOp, operand: Operand, dim: int, dtype: int | None = None) -> Any:
    operand = builder.read(operand)
    largest = _keeping(builder, llm.ReduceKind.Max, operand, [dim])
    shifted = arith.SubFOp(operand.value, builder.expand(largest, operand.shape, like=[operand]).value).result
    weights = Tensor(math.ExpOp(shifted).result, operand.shape)
    total = _keeping(builder, llm.ReduceKind.Sum, weights, [dim])
    divisor = builder.expand(total, operand.shape, like=[operand]).value
    return Tensor(arith.DivFOp(weights.value, divisor).result, operand.shape)
