"""SSA scalars and small vectors with Python's operators.

`Value` wraps an `ir.Value` of integer, float or vector type. Operators build `arith` ops at
the current insertion point; Python numbers become constants of the other side's type.
Integers are unsigned where it matters (division, comparison): everything a kernel counts
is a size or an index. No operator hides a synchronisation or a memory access.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from mlir import ir
from mlir.dialects import arith, math

from llmc.dialects import tile

from . import types as t
from .location import here

Number: TypeAlias = "int | float"
Operand: TypeAlias = "Value | int | float"


def element_type(type_: ir.Type) -> ir.Type:
    return type_.element_type if isinstance(type_, ir.VectorType) else type_


def is_float(type_: ir.Type) -> bool:
    return isinstance(element_type(type_), ir.FloatType)


def constant(number: Number, type_: ir.Type) -> Value:
    element = element_type(type_)
    attribute: ir.Attribute
    if is_float(type_):
        attribute = ir.FloatAttr.get(element, float(number))
    else:
        # Unsigned literals such as 0xFFFFFFFF wrap to the signless type's range.
        width = ir.IntegerType(element).width
        bits = int(number) & ((1 << width) - 1)
        signed = bits - (1 << width) if width > 1 and bits >> (width - 1) else bits
        attribute = ir.IntegerAttr.get(element, signed)
    if isinstance(type_, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(type_, attribute)
    return Value(arith.ConstantOp(type_, attribute, loc=here()).result)


class Value:
    """A scalar or small vector in the kernel being built."""

    __slots__ = ("ir",)

    def __init__(self, value: ir.Value):
        self.ir = value

    @property
    def type(self) -> ir.Type:
        return self.ir.type

    def _other(self, other: Operand) -> Value:
        if not isinstance(other, Value):
            return constant(other, self.type)
        if isinstance(self.type, ir.VectorType) and other.type == element_type(self.type):
            return splat(other, self.type.shape[0])
        if other.type != self.type:
            raise TypeError(f"operands of different types: {self.type} and {other.type}")
        return other

    def _binary(self, other: Operand, float_op: object, int_op: object, swap: bool = False) -> Value:
        if isinstance(other, Value) and isinstance(other.type, ir.VectorType) and self.type == element_type(other.type):
            # A scalar beside a vector counts for every element.
            lhs, rhs = splat(self, other.type.shape[0]), other
        else:
            lhs, rhs = self, self._other(other)
        if swap:
            lhs, rhs = rhs, lhs
        op = float_op if is_float(self.type) else int_op
        if op is None:
            raise TypeError(f"the operator is not defined on {self.type}")
        return Value(op(lhs.ir, rhs.ir, loc=here()).result)  # type: ignore[operator]

    def __add__(self, other: Operand) -> Value:
        return self._binary(other, arith.AddFOp, arith.AddIOp)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Value:
        return self._binary(other, arith.SubFOp, arith.SubIOp)

    def __rsub__(self, other: Operand) -> Value:
        return self._binary(other, arith.SubFOp, arith.SubIOp, swap=True)

    def __mul__(self, other: Operand) -> Value:
        return self._binary(other, arith.MulFOp, arith.MulIOp)

    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> Value:
        return self._binary(other, arith.DivFOp, None)

    def __rtruediv__(self, other: Operand) -> Value:
        return self._binary(other, arith.DivFOp, None, swap=True)

    def __floordiv__(self, other: Operand) -> Value:
        return self._binary(other, None, arith.DivUIOp)

    def __mod__(self, other: Operand) -> Value:
        return self._binary(other, None, arith.RemUIOp)

    def __and__(self, other: Operand) -> Value:
        return self._binary(other, None, arith.AndIOp)

    def __or__(self, other: Operand) -> Value:
        return self._binary(other, None, arith.OrIOp)

    def __xor__(self, other: Operand) -> Value:
        return self._binary(other, None, arith.XOrIOp)

    def __lshift__(self, other: Operand) -> Value:
        return self._binary(other, None, arith.ShLIOp)

    def __rshift__(self, other: Operand) -> Value:
        return self._binary(other, None, arith.ShRUIOp)

    def __neg__(self) -> Value:
        if is_float(self.type):
            return Value(arith.NegFOp(self.ir, loc=here()).result)
        return constant(0, self.type) - self

    def _compare(self, other: Operand, float_predicate: str, int_predicate: str) -> Value:
        rhs = self._other(other)
        if is_float(self.type):
            predicate = getattr(arith.CmpFPredicate, float_predicate)
            return Value(arith.CmpFOp(predicate, self.ir, rhs.ir, loc=here()).result)
        predicate = getattr(arith.CmpIPredicate, int_predicate)
        return Value(arith.CmpIOp(predicate, self.ir, rhs.ir, loc=here()).result)

    def __lt__(self, other: Operand) -> Value:
        return self._compare(other, "OLT", "ult")

    def __le__(self, other: Operand) -> Value:
        return self._compare(other, "OLE", "ule")

    def __gt__(self, other: Operand) -> Value:
        return self._compare(other, "OGT", "ugt")

    def __ge__(self, other: Operand) -> Value:
        return self._compare(other, "OGE", "uge")

    def equals(self, other: Operand) -> Value:
        return self._compare(other, "OEQ", "eq")

    def differs(self, other: Operand) -> Value:
        return self._compare(other, "UNE", "ne")

    def less_signed(self, other: Operand) -> Value:
        """Signed comparison, for the few values that may be negative."""
        return self._compare(other, "OLT", "slt")

    def __bool__(self) -> bool:
        raise TypeError("the truth of a kernel value is not known here; use select() or if_()")

    def min(self, other: Operand) -> Value:
        return self._binary(other, arith.MinimumFOp, arith.MinUIOp)

    def max(self, other: Operand) -> Value:
        return self._binary(other, arith.MaximumFOp, arith.MaxUIOp)

    def to(self, element: ir.Type) -> Value:
        """Converts the element type; integers are zero-extended except from i32 to float.

        8-bit floats convert from and to float32 only, and saturate.
        """
        source = element_type(self.type)
        if source == element:
            return self
        target = element
        if isinstance(self.type, ir.VectorType):
            target = ir.VectorType.get(self.type.shape, element)
        return Value(_conversion(source, element)(target, self.ir, loc=here()).result)

    def fma(self, factor: Value, addend: Value) -> Value:
        """self * factor + addend with one rounding."""
        return Value(math.FmaOp(self.ir, factor.ir, addend.ir, loc=here()).result)

    def round(self) -> Value:
        """To the nearest integer, halves to even."""
        return Value(math.RoundEvenOp(self.ir, loc=here()).result)

    def bits(self) -> Value:
        """The 32 bits of a float32 as an integer."""
        return Value(arith.BitcastOp(ir.IntegerType.get_signless(32), self.ir, loc=here()).result)

    def exp2(self) -> Value:
        return Value(math.Exp2Op(self.ir, loc=here()).result)

    def sum(self) -> Value:
        """Sum of the elements of a vector, as a scalar."""
        from mlir.dialects import vector

        kind = ir.Attribute.parse("#vector.kind<add>")
        return Value(vector.ReductionOp(element_type(self.type), kind, self.ir, loc=here()).result)

    def __getitem__(self, index: int) -> Value:
        """One element of a vector."""
        from mlir.dialects import vector

        return Value(vector.ExtractOp(self.ir, [], [index], loc=here()).result)

    def rsqrt(self) -> Value:
        return Value(math.RsqrtOp(self.ir, loc=here()).result)


def i32(number: Operand) -> Value:
    return number if isinstance(number, Value) else constant(number, t.i32())


def values(result: Any) -> list[Value]:
    """What a region's function returned, as a list: nothing, one value or several."""
    if result is None:
        return []
    return list(result) if isinstance(result, (tuple, list)) else [result]


def one_or_all(results: Sequence[ir.Value]) -> Any:
    wrapped = [Value(result) for result in results]
    return wrapped[0] if len(wrapped) == 1 else tuple(wrapped)


def enum(mnemonic: str, value: str) -> ir.Attribute:
    """An enum attribute of the tile dialect."""
    return ir.Attribute.parse(f"#tile<{mnemonic} {value}>")


def _conversion(source: ir.Type, target: ir.Type) -> type:
    from_float, to_float = isinstance(source, ir.FloatType), isinstance(target, ir.FloatType)
    if to_float and target.width == 8:
        return tile.NarrowOp
    if from_float and source.width == 8:
        return tile.WidenOp
    if from_float and to_float:
        return arith.ExtFOp if target.width > source.width else arith.TruncFOp
    if to_float:
        return arith.SIToFPOp if source.width <= 32 else arith.UIToFPOp
    if from_float:
        return arith.FPToSIOp
    return arith.ExtUIOp if target.width > source.width else arith.TruncIOp


def select(condition: Value, then: Value, otherwise: Operand) -> Value:
    other = then._other(otherwise)
    return Value(arith.SelectOp(condition.ir, then.ir, other.ir, loc=here()).result)


def pack(elements: Sequence[Value]) -> Value:
    """A vector of scalars of one type."""
    from mlir.dialects import vector

    type_ = t.vector(len(elements), elements[0].type)
    return Value(vector.FromElementsOp(type_, [e.ir for e in elements], loc=here()).result)


def splat(value: Value, count: int) -> Value:
    """A vector whose `count` elements all equal the scalar."""
    if count == 1:
        return value
    from mlir.dialects import vector

    return Value(vector.BroadcastOp(t.vector(count, value.type), value.ir, loc=here()).result)
