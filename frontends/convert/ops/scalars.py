"""Constants, lists and the arithmetic on sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch_mlir import ir as torch_ir

from llmc.frontends.convert.builder import Builder
from llmc.frontends.convert.registry import lowers
from llmc.frontends.convert.torch_op import TorchOp
from llmc.frontends.convert.values import DynamicSize, Operand, Size, Weight, static_shape
from llmc.frontends.errors import FrontendError


@lowers("constant.int")
def _integer(builder: Builder, op: TorchOp) -> Any:
    return torch_ir.IntegerAttr(op.attribute("value")).value


@lowers("constant.float")
def _float(builder: Builder, op: TorchOp) -> Any:
    return torch_ir.FloatAttr(op.attribute("value")).value


@lowers("constant.bool")
def _bool(builder: Builder, op: TorchOp) -> Any:
    # Held as an i1 integer attribute, whose Python class differs between releases.
    return str(op.attribute("value")) in ("true", "-1 : i1", "1 : i1")


@lowers("constant.none", "constant.device")
def _none(builder: Builder, op: TorchOp) -> Any:
    return None


@lowers("constant.str")
def _string(builder: Builder, op: TorchOp) -> Any:
    return torch_ir.StringAttr(op.attribute("value")).value


@lowers("prim.ListConstruct")
def _list(builder: Builder, op: TorchOp, *elements: Any) -> Any:
    return list(elements)


@lowers("prim.ListUnpack")
def _unpack(builder: Builder, op: TorchOp, elements: list[Any]) -> Any:
    return elements if len(op.operation.results) > 1 else elements[0]


@lowers("llmc.weight")
def _weight(builder: Builder, op: TorchOp) -> Any:
    return Weight(torch_ir.StringAttr(op.attribute("llmc.name")).value, static_shape(op.result.shape))


@lowers("vtensor.literal")
def _literal(builder: Builder, op: TorchOp) -> Any:
    shape = static_shape(op.result.shape)
    kind = np.float32 if op.result.element == "float" else np.int32
    attribute = op.attribute("value")
    if torch_ir.DenseElementsAttr.isinstance(attribute) and torch_ir.DenseElementsAttr(attribute).is_splat:
        splat = torch_ir.DenseElementsAttr(attribute).get_splat_value()
        return builder.constant(np.full(shape, splat.value, dtype=kind))
    return builder.constant(np.array(torch_ir.DenseResourceElementsAttr(attribute)).reshape(shape).astype(kind))


@lowers("aten.size.int")
def _size(builder: Builder, op: TorchOp, tensor: Operand, dimension: int) -> Any:
    size = tensor.shape[dimension]
    return DynamicSize() if size is None else size


@lowers("aten.add.int", "prims.add.int")
def _add(builder: Builder, op: TorchOp, left: Size, right: Size) -> Any:
    if isinstance(right, DynamicSize):
        left, right = right, left
    if isinstance(left, DynamicSize):
        if isinstance(right, DynamicSize):
            return DynamicSize(left.factor + right.factor, left.offset + right.offset)
        return DynamicSize(left.factor, left.offset + right)
    assert isinstance(right, int)
    return left + right


@lowers("aten.sub.int")
def _sub(builder: Builder, op: TorchOp, left: Size, right: Size) -> Any:
    if isinstance(right, DynamicSize):
        return _add(builder, op, left, DynamicSize(-right.factor, -right.offset))
    return _add(builder, op, left, -right)


@lowers("aten.mul.int")
def _mul(builder: Builder, op: TorchOp, left: Size, right: Size) -> Any:
    if isinstance(right, DynamicSize):
        left, right = right, left
    if isinstance(left, DynamicSize):
        if isinstance(right, DynamicSize):
            raise FrontendError("a size that grows with the square of the number of tokens")
        return DynamicSize(left.factor * right, left.offset * right)
    assert isinstance(right, int)
    return left * right


@lowers("aten.floordiv.int")
def _floordiv(builder: Builder, op: TorchOp, left: Size, right: Size) -> Any:
    if isinstance(left, DynamicSize):
        if isinstance(right, int) and left.factor % right == 0 and left.offset % right == 0:
            return DynamicSize(left.factor // right, left.offset // right)
        raise FrontendError("a size that is a fraction of the number of tokens")
    assert isinstance(right, int)
    return left // right
