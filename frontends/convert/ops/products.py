"""Matrix products: `llm.linear` with weights, `llm.matmul` between activations."""

from __future__ import annotations

from typing import Any

from llmc.dialects import llm
from llmc.frontends.convert.builder import Builder
from llmc.frontends.convert.ops.elementwise import _add_values
from llmc.frontends.convert.registry import lowers
from llmc.frontends.convert.torch_op import TorchOp
from llmc.frontends.convert.values import Operand, Shape, Tensor, Weight, folded, static_elements
from llmc.frontends.errors import FrontendError


def _linear(builder: Builder, operand: Operand, weight: Weight, bias: Operand | None, shape: Shape) -> Tensor:
    """`operand * weight^T + bias` for an operand of any rank: `llm.linear` works on rows."""
    operand = builder.read(operand)
    out_features, in_features = weight.shape
    leading = folded(operand.shape)[:-1]
    rows = None if None in leading else static_elements(leading)
    value = builder.reshaped_value(operand.value, folded(operand.shape), (rows, in_features))
    result = llm.LinearOp(
        builder.type((rows, out_features), builder.f32),
        value,
        builder.weight(weight),
        bias=builder.optional_value(bias),
    ).result
    return Tensor(builder.reshaped_value(result, (rows, out_features), folded(shape)), shape)


@lowers("aten.linear")
def _aten_linear(builder: Builder, op: TorchOp, operand: Operand, weight: Operand, bias: Operand | None = None) -> Any:
    shape = op.result.shape
    if not isinstance(weight, Weight):
        product = _matmul_values(builder, builder.read(operand), _transposed(builder, weight), shape)
        return product if bias is None else _add_values(builder, op, product, bias)
    return _linear(builder, operand, weight, bias, shape)


@lowers("aten.addmm")
def _addmm(
    builder: Builder,
    op: TorchOp,
    bias: Operand | None,
    operand: Operand,
    weight: Operand,
    beta: float = 1,
    alpha: float = 1,
) -> Any:
    if beta != 1 or alpha != 1:
        raise FrontendError("addmm with factors")
    # GPT-2 keeps its weights as [in, out].
    if not isinstance(weight, Weight):
        product = _matmul_values(builder, builder.read(operand), builder.read(weight), op.result.shape)
        return _add_values(builder, op, product, bias)
    return _linear(builder, operand, _flip(weight), bias, op.result.shape)


@lowers("aten.mm", "aten.matmul", "aten.bmm")
def _matmul(builder: Builder, op: TorchOp, left: Operand, right: Operand) -> Any:
    if isinstance(right, Weight) and len(right.shape) == 2:
        return _linear(builder, left, _flip(right), None, op.result.shape)
    return _matmul_values(builder, builder.read(left), builder.read(right), op.result.shape)


def _flip(weight: Weight) -> Weight:
    return Weight(weight.name, weight.stored_shape, not weight.transposed)


def _transposed(builder: Builder, operand: Operand) -> Any:
    operand = builder.read(operand)
    rank = len(operand.shape)
    value = builder.transpose(builder.unfolded(operand), [*range(rank - 2), rank - 1, rank - 2])
    return builder.folding(value, (*operand.shape[:-2], operand.shape[-1], operand.shape[-2]))


def _matmul_values(builder: Builder, left: Tensor, right: Tensor, shape: Shape) -> Tensor:
    batch = shape[:-2]
    left = builder.expand(left, (*batch, *left.shape[-2:]), like=[right])
    right = builder.expand(right, (*batch, *right.shape[-2:]), like=[left])
    # A product of two matrices of one row or one column could fold a dimension that is part of the product.
    full = (builder.unfolded(left), builder.unfolded(right)) if not batch else (left.value, right.value)
    if batch:
        target = folded(shape)
        return Tensor(llm.MatmulOp(builder.type(target, builder.f32), *full).result, shape)
    return builder.folding(llm.MatmulOp(builder.type(shape, builder.f32), *full).result, shape)
