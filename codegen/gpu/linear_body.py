"""What a `linear` kernel computes: its sizes, and its epilogue as elements of the body.

The epilogue (bias, gated activation, residual, casts) is replayed on the accumulator's elements
by the kernel that holds them; this file knows how a body value maps to memory there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlir import ir

from ..builder import KernelBuilder, Value
from ..builder import types as t
from ..kernel import Argument, UnsupportedKernel
from . import activations
from .body import Body, element, last, pointer, shape
from .replay import Replay, enum_name


@dataclass(frozen=True)
class LinearBody:
    """A `linear` kernel: y[T, N] = x[T, K] w[N, K]^T, then the epilogue to [T, columns]."""

    body: Body

    @property
    def op(self) -> Any:
        return self.body.find("llm.linear")

    @property
    def input(self) -> ir.Value:
        return self.op.operands[0]

    @property
    def weight(self) -> ir.Value:
        return self.op.operands[1]

    @property
    def n(self) -> int:
        return shape(self.weight)[0] or 0

    @property
    def k(self) -> int:
        return last(self.weight)

    @property
    def result(self) -> ir.Value:
        results = self.body.results
        if len(results) != 1:
            raise UnsupportedKernel(f"@{self.body.name}: expected one result, found {len(results)}")
        return results[0]

    @property
    def columns(self) -> int:
        """Columns of the result: N, or N / 2 behind a packed GLU."""
        return last(self.result)

    @property
    def glu(self) -> Any | None:
        found = self.body.all("llm.packed_glu")
        return found[0] if found else None

    @property
    def extra(self) -> list[ir.Value]:
        """Arguments that only the epilogue reads: bias, residual, ..."""
        return [a for a in self.body.block.arguments if a not in (self.input, self.weight)]

    def residual_sum(self) -> tuple[ir.Value, ir.Value] | None:
        """(operand, value) where the last step of the epilogue adds a float32 operand of the result's shape to
        a value that does not read it: where the result lies on the operand, memory can do the sum."""
        result = self.result
        op = result.owner
        if self.body.is_argument(result) or op.name != "arith.addf" or not isinstance(element(result), ir.F32Type):
            return None
        for residual, value in (op.operands, list(op.operands)[::-1]):
            uses = len(list(residual.uses))
            if residual in self.extra and residual.type == result.type and uses == 1:
                return residual, value
        return None

    def check(self) -> None:
        """Raises UnsupportedKernel for what the tensor-core kernels cannot take."""
        for value, name in ((self.input, "input"), (self.weight, "weight")):
            if element(value) not in (t.bf16(), t.f16()):
                raise UnsupportedKernel(f"@{self.body.name}: expected a 16-bit {name}, found {value.type}")
            if not self.body.is_argument(value):
                raise UnsupportedKernel(f"@{self.body.name}: the {name} must be an argument of the kernel")
        if self.k % 8:
            raise UnsupportedKernel(f"@{self.body.name}: K = {self.k} is not a multiple of 8, as copies need")
        glu = self.glu
        if glu is not None and (
            enum_name(glu.attributes["layout"]) != "interleaved" or ir.IntegerAttr(glu.attributes["block"]).value != 8
        ):
            raise UnsupportedKernel(f"@{self.body.name}: expected gate and up interleaved in blocks of 8")

    def parameters(self) -> dict[str, ir.Type]:
        """Kernel parameters of the epilogue: the result, then the extra operands."""
        types = {"out": pointer(self.result)}
        return types | {f"extra{i}": pointer(a, weight=shape(a)[0] is not None) for i, a in enumerate(self.extra)}

    def arguments(self) -> list[Argument]:
        return [{"result": 0}, *(self.body.operand(a) for a in self.extra)]


class Epilogue:
    """Finishes elements of the product and stores them.

    `memory` are the kernel's values for `LinearBody.parameters()`, in order.
    """

    def __init__(self, k: KernelBuilder, linear: LinearBody, memory: list[Value]):
        self._k = k
        self._linear = linear
        self.out = memory[0]
        self._extra = dict(zip(linear.extra, memory[1:], strict=True))

    def memory(self, value: ir.Value) -> Value:
        """Where an operand lies."""
        return self._extra[value]

    def finish(self, factors: Sequence[Value], row: Value, column: Value, inside: Value | None) -> None:
        """Stores what `value` gives; where `inside` is false, nothing is read or stored (None: all is inside)."""
        self.store(self.value(factors, row, column, inside), row, column, inside)

    def store(self, value: Value, row: Value, column: Value, inside: Value | None) -> None:
        """Stores finished element(s) where `inside` holds (None: everywhere)."""
        at = row.to(t.i64()) * self._linear.columns + column.to(t.i64())
        self._k.store(value.to(element(self._linear.result)), self.out, at, condition=inside)

    def add(self, value: Value, row: Value, column: Value, inside: Value) -> None:
        """Adds a scalar to the float32 result in memory where `inside` holds: nothing is loaded."""
        with self._k.if_(inside):
            self._k.atomic_add(value, self.out, row.to(t.i64()) * self._linear.columns + column.to(t.i64()))

    def value(
        self,
        factors: Sequence[Value],
        row: Value,
        column: Value,
        inside: Value | None,
        loaded: Mapping[ir.Value, Value] | None = None,
        target: ir.Value | None = None,
    ) -> Value:
        """The finished element(s) of row `row` from column `column` of the result on, or of another value.

        `factors` is the product, or gate and up behind a GLU: scalars, or vectors of neighbours in
        a row (then `column` is that of the first). `loaded` are operands that are here already.
        """
        linear = self._linear
        first = factors[0]
        width = first.type.shape[0] if isinstance(first.type, ir.VectorType) else 1
        if linear.glu is None:
            known = {linear.op.results[0]: self._biased(first, column, inside, width)}
        else:
            if len(linear.op.operands) > 2:
                raise UnsupportedKernel(f"@{linear.body.name}: a bias in front of a packed GLU")
            gate = activations.apply(enum_name(linear.glu.attributes["kind"]), first)
            known = {linear.glu.results[0]: gate * factors[1]}
        known |= loaded or {}
        loaders = {a: (lambda a=a: self._load(a, row, column, inside, width)) for a in linear.extra}
        return Replay(self._k, known, loaders).value(target if target is not None else linear.result)

    def _biased(self, product: Value, column: Value, inside: Value | None, width: int) -> Value:
        operands = list(self._linear.op.operands)
        if len(operands) < 3:
            return product
        bias = self._k.load(self._extra[operands[2]], column, count=width, condition=inside)
        return product + bias.to(t.f32())

    def load(self, value: ir.Value, row: Value, column: Value, width: int) -> Value:
        """Elements of an operand of the epilogue, as float32."""
        return self._load(value, row, column, None, width)

    def _load(self, value: ir.Value, row: Value, column: Value, inside: Value | None, width: int) -> Value:
        memory = self._extra[value]
        if len(shape(value)) == 1:
            return self._k.load(memory, column, count=width, condition=inside).to(t.f32())
        at = row.to(t.i64()) * self._linear.columns + column.to(t.i64())
        return self._k.load(memory, at, count=width, condition=inside).to(t.f32())
