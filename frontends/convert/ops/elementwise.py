"""Elementwise arithmetic, in arith and math."""

from __future__ import annotations

from typing import Any

from mlir.dialects import arith, math

from llmc.dialects import llm
from llmc.frontends.convert.builder import Builder
from llmc.frontends.convert.registry import lowers
from llmc.frontends.convert.torch_op import TorchOp
from llmc.frontends.convert.values import Operand, Tensor, Weight
from llmc.frontends.errors import FrontendError


def element_of(builder: Builder, kind: str) -> Any:
    return {"float": builder.f32, "int": builder.i32, "bool": builder.i1}[kind]


def _operands(builder: Builder, op: TorchOp, operands: tuple[Operand | float, ...]) -> Any:
    """The operands of an elementwise op, broadcast to its result."""
    read = [builder.read(operand) if isinstance(operand, (Tensor, Weight)) else operand for operand in operands]
    return builder.broadcast(read, op.result.shape, element_of(builder, op.result.element))


def _binary(float_op: Any, int_op: Any) -> Any:
    def build(builder: Builder, op: TorchOp, left: Operand | float, right: Operand | float) -> Any:
        kind = op.result.element
        if kind == "bool" or (kind == "int" and int_op is None):
            raise FrontendError(f"not defined on {kind} tensors")
        values = _operands(builder, op, (left, right))
        return Tensor((float_op if kind == "float" else int_op)(*values).result, op.result.shape)

    return build


_add_values = _binary(arith.AddFOp, arith.AddIOp)
_sub_values = _binary(arith.SubFOp, arith.SubIOp)
_mul_values = _binary(arith.MulFOp, arith.MulIOp)
_div_values = _binary(arith.DivFOp, None)


def _same(builder: Builder, op: TorchOp, operand: Operand | float) -> Any:
    """The operand itself, for operations with a neutral element."""
    if not isinstance(operand, (Tensor, Weight)):
        return None
    operand = builder.read(operand)
    if operand.shape != op.result.shape or operand.element_type != element_of(builder, op.result.element):
        return None
    return operand


@lowers("aten.add.Tensor", "aten.add.Scalar")
def _add(builder: Builder, op: TorchOp, left: Operand | float, right: Operand | float, alpha: float = 1) -> Any:
    if right == 0 and (same := _same(builder, op, left)):
        return same
    if alpha != 1:
        right = _scaled(builder, op, right, alpha)
    return _add_values(builder, op, left, right)


@lowers("aten.sub.Tensor", "aten.sub.Scalar")
def _sub(builder: Builder, op: TorchOp, left: Operand | float, right: Operand | float, alpha: float = 1) -> Any:
    if right == 0 and (same := _same(builder, op, left)):
        return same
    if alpha != 1:
        right = _scaled(builder, op, right, alpha)
    return _sub_values(builder, op, left, right)


@lowers("aten.rsub.Scalar", "aten.rsub.Tensor")
def _rsub(builder: Builder, op: TorchOp, left: Operand | float, right: Operand | float, alpha: float = 1) -> Any:
    if alpha != 1:
        left = _scaled(builder, op, left, alpha)
    return _sub_values(builder, op, right, left)


def _scaled(builder: Builder, op: TorchOp, operand: Operand | float, factor: float) -> Any:
    if not isinstance(operand, (Tensor, Weight)):
        return operand * factor
    operand = builder.read(operand)
    element = element_of(builder, op.result.element)
    multiply = arith.MulFOp if element == builder.f32 else arith.MulIOp
    return Tensor(multiply(*builder.broadcast([operand, factor], operand.shape, element)).result, operand.shape)


@lowers("aten.mul.Tensor", "aten.mul.Scalar")
def _mul(builder: Builder, op: TorchOp, left: Operand | float, right: Operand | float) -> Any:
    # torch spells "times one" in every rotary embedding: it multiplies by the attention scaling.
    if right == 1 and (same := _same(builder, op, left)):
        return same
    return _mul_values(builder, op, left, right)


@lowers("aten.div.Tensor", "aten.div.Scalar")
def _div(builder: Builder, op: TorchOp, left: Operand | float, right: Operand | float) -> Any:
    if right == 1 and (same := _same(builder, op, left)):
        return same
    return _div_values(builder, op, left, right)


@lowers("aten.reciprocal")
def _reciprocal(builder: Builder, op: TorchOp, operand: Operand) -> Any:
    return _div_values(builder, op, 1.0, operand)


@lowers("aten.maximum")
def _maximum(builder: Builder, op: TorchOp, left: Operand | float, right: Operand | float) -> Any:
    return _binary(arith.MaximumFOp, arith.MaxSIOp)(builder, op, left, right)


@lowers("aten.minimum")
def _minimum(builder: Builder, op: TorchOp, left: Operand | float, right: Operand | float) -> Any:
    return _binary(arith.MinimumFOp, arith.MinSIOp)(builder, op, left, right)


@lowers("aten.clamp")
def _clamp(builder: Builder, op: TorchOp, operand: Operand, low: float | None = None, high: float | None = None) -> Any:
    result = builder.read(operand)
    if low is not None:
        result = _maximum(builder, op, result, low)
    return result if high is None else _minimum(builder, op, result, high)


@lowers("aten.clamp_min")
def _clamp_min(builder: Builder, op: TorchOp, operand: Operand, low: float | None) -> Any:
    return _maximum(builder, op, operand, low)


@lowers("aten.clamp_max")
def _clamp_max(builder: Builder, op: TorchOp, operand: Operand, high: float | None) -> Any:
    return _minimum(builder, op, operand, high)


@lowers("aten.pow.Tensor_Scalar")
def _pow(builder: Builder, op: TorchOp, operand: Operand, exponent: Operand | float) -> Any:
    operand = builder.read(operand)
    if exponent in (2, 3):
        result = _mul_values(builder, op, operand, operand)
        return result if exponent == 2 else _mul_values(builder, op, result, operand)
    if exponent == 0.5:
        return _unary_float(math.SqrtOp)(builder, op, operand)
    if exponent == -0.5:
        return _unary_float(math.RsqrtOp)(builder, op, operand)
    return _power(builder, op, operand, exponent)


@lowers("aten.pow.Scalar", "aten.pow.Tensor_Tensor")
def _power(builder: Builder, op: TorchOp, base: Operand | float, exponent: Operand | float) -> Any:
    if op.result.element != "float":
        raise FrontendError("not defined on integer tensors")
    return Tensor(math.PowFOp(*_operands(builder, op, (base, exponent))).result, op.result.shape)


@lowers("aten.square")
def _square(builder: Builder, op: TorchOp, operand: Operand) -> Any:
    return _mul_values(builder, op, operand, operand)


def _unary_float(float_op: Any) -> Any:
    def build(builder: Builder, op: TorchOp, operand: Operand) -> Any:
        if op.result.element != "float":
            raise FrontendError("not defined on integer tensors")
        return Tensor(float_op(*_operands(builder, op, (operand,))).result, op.result.shape)

    return build


for _name, _op in {
    "rsqrt": math.RsqrtOp,
    "sqrt": math.SqrtOp,
    "cos": math.CosOp,
    "sin": math.SinOp,
    "exp": math.ExpOp,
    "log": math.LogOp,
    "tanh": math.TanhOp,
    "erf": math.ErfOp,
    "abs": math.AbsFOp,
}.items():
    lowers(f"aten.{_name}")(_unary_float(_op))


@lowers("aten.neg")
def _neg(builder: Builder, op: TorchOp, operand: Operand) -> Any:
    if op.result.element == "int":
        return _sub_values(builder, op, 0, operand)
    return _unary_float(arith.NegFOp)(builder, op, operand)


def _comparison(predicate: str) -> Any:
    def build(builder: Builder, op: TorchOp, left: Operand | float, right: Operand | float) -> Any:
        compared = [builder.read(operand) for operand in (left, right) if isinstance(operand, (Tensor, Weight))]
        floats = any(operand.element_type == builder.f32 for operand in compared) or isinstance(right, float)
        element = builder.f32 if floats else builder.i32
        operands: list[Any] = [compared[0], compared[1] if len(compared) == 2 else right]
        values = builder.broadcast(operands, op.result.shape, element)
        if floats:
            ordered = "UNE" if predicate == "ne" else f"O{predicate.upper()}"
            return Tensor(arith.CmpFOp(arith.CmpFPredicate[ordered], *values).result, op.result.shape)
        signed = predicate if predicate in ("eq", "ne") else f"s{predicate}"
        return Tensor(arith.CmpIOp(arith.CmpIPredicate[signed], *values).result, op.result.shape)

    return build


for _name in ("eq", "ne", "gt", "ge", "lt", "le"):
    lowers(f"aten.{_name}.Scalar", f"aten.{_name}.Tensor")(_comparison(_name))


@lowers("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar")
def _where(builder: Builder, op: TorchOp, condition: Operand, left: Operand | float, right: Operand | float) -> Any:
    shape, element = op.result.shape, element_of(builder, op.result.element)
    read = [builder.read(operand) if isinstance(operand, (Tensor, Weight)) else operand for operand in (left, right)]
    condition = builder.read(condition)
    tensors = [operand for operand in read if isinstance(operand, Tensor)]
    chosen = builder.expand(condition, shape, like=tensors).value
    return Tensor(arith.SelectOp(chosen, *builder.broadcast(read, shape, element, like=[condition])).result, shape)


def _activation(kind: Any) -> Any:
    def build(builder: Builder, op: TorchOp, operand: Operand) -> Any:
        operand = builder.read(operand)
        return Tensor(llm.ActivationOp(operand.value.type, kind, operand.value).result, operand.shape)

    return build


for _name in ("relu", "silu", "sigmoid"):
    lowers(f"aten.{_name}")(_activation(llm.ActivationKind[_name.capitalize()]))


@lowers("aten.gelu")
def _gelu(builder: Builder, op: TorchOp, operand: Operand, approximate: str = "none") -> Any:
    kind = llm.ActivationKind.GeluTanh if approximate == "tanh" else llm.ActivationKind.Gelu
    return _activation(kind)(builder, op, operand)


@lowers(
    "aten.to.dtype",
    "aten.to.device",
    "aten.to.dtype_layout",
    "aten._to_copy",
    "aten.float",
    "prims.convert_element_type",
)
def _to(builder: Builder, op: TorchOp, operand: Operand, *_: object) -> Any:
    # Casts between float types of the source model disappear: precision is assigned by the compiler.
    if isinstance(operand, Weight) and op.result.element == "float":
        return operand
    operand = builder.read(operand)
    return Tensor(builder.cast(operand.value, element_of(builder, op.result.element)), operand.shape)


@lowers("aten.type_as", "aten.to.other", unread=(1,))
def _to_type_of(builder: Builder, op: TorchOp, operand: Operand, *_: object) -> Any:
    return _to(builder, op, operand)


@lowers(
    "aten.alias",
    "aten.contiguous",
    "aten.clone",
    "aten.detach",
    "aten.lift_fresh_copy",
    "aten.dropout",
    "aten.detach_copy",
)
def _identity(builder: Builder, op: TorchOp, operand: Operand, *_: object) -> Any:
    return operand
