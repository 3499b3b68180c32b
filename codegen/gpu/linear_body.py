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
from .body import Body, bytes_of, element, last, pointer, shape
from .replay import Replay, enum_name


@dataclass(frozen=True)
class LinearBody:
    """A `linear` kernel: y[T, N] = x[T, K] w[N, K]^T, then the epilogue to [T, columns].

    The multiply is an `llm.linear`, or an `llm.scaled_linear` of 8-bit floats with a scale for each row of w and
    one for each row of x: the epilogue then begins with the scales.
    """

    body: Body

    @property
    def op(self) -> Any:
        return self.body.find("llm.scaled_linear" if self.body.all("llm.scaled_linear") else "llm.linear")

    @property
    def scaled(self) -> bool:
        return bool(self.op.name == "llm.scaled_linear")

    @property
    def input(self) -> ir.Value:
        return self.op.operands[0]

    @property
    def weight(self) -> ir.Value:
        return self.op.operands[1]

    def _operand(self, index: int) -> ir.Value | None:
        """Operand `index` of an `llm.scaled_linear`: input, weight, weight_scale, input_scale, weight_zero, bias."""
        sizes = list(self.op.attributes["operandSegmentSizes"])
        return self.op.operands[sum(sizes[:index])] if sizes[index] else None

    @property
    def weight_scale(self) -> ir.Value | None:
        """float32 [N, 1]."""
        return self._operand(2) if self.scaled else None

    @property
    def input_scale(self) -> ir.Value | None:
        """float32 [T, 1]."""
        return self._operand(3) if self.scaled else None

    @property
    def bias(self) -> ir.Value | None:
        """[N]."""
        operands = list(self.op.operands)
        if self.scaled:
            return self._operand(5)
        return operands[2] if len(operands) > 2 else None

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
        """Arguments that only the epilogue reads: scales, bias, residual, ..."""
        return [a for a in self.body.block.arguments if a not in (self.input, self.weight)]

    @property
    def addends(self) -> list[ir.Value]:
        """Those of `extra` that stand behind the product: all but scales and bias."""
        product = [v for v in (self.weight_scale, self.input_scale, self.bias) if v is not None]
        return [a for a in self.extra if a not in product]

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

    def check(self, *, float8: bool = False) -> None:
        """Raises UnsupportedKernel for what the tensor-core kernels cannot take.

        float8: whether they take an `llm.scaled_linear` of f8E4M3FN.
        """
        name = self.body.name
        types = [t.f8()] if self.scaled and float8 else [t.bf16(), t.f16()]
        for value, what in ((self.input, "input"), (self.weight, "weight")):
            if element(value) not in types:
                expected = " or ".join(str(type_) for type_ in types)
                raise UnsupportedKernel(f"@{name}: expected the {what} in {expected}, found {value.type}")
            if not self.body.is_argument(value):
                raise UnsupportedKernel(f"@{name}: the {what} must be an argument of the kernel")
        if self.scaled:
            self._check_scales()
        whole = 16 // bytes_of(element(self.input))
        if self.k % whole:
            raise UnsupportedKernel(f"@{name}: K = {self.k} is not a multiple of {whole}, as copies need")
        glu = self.glu
        if glu is None:
            return
        if enum_name(glu.attributes["layout"]) != "interleaved" or ir.IntegerAttr(glu.attributes["block"]).value != 8:
            raise UnsupportedKernel(f"@{name}: expected gate and up interleaved in blocks of 8")
        if self.bias is not None:
            raise UnsupportedKernel(f"@{name}: a bias in front of a packed GLU")

    def _check_scales(self) -> None:
        name = self.body.name
        if self._operand(4) is not None:
            raise UnsupportedKernel(f"@{name}: zero points beside 8-bit floats")
        for value, rows, what in ((self.weight_scale, self.n, "w"), (self.input_scale, None, "x")):
            if value is None or shape(value) != [rows, 1] or element(value) != t.f32():
                found = "none" if value is None else value.type
                raise UnsupportedKernel(f"@{name}: expected one float32 scale for each row of {what}, found {found}")
            if not self.body.is_argument(value):
                raise UnsupportedKernel(f"@{name}: the scales of {what} must be an argument of the kernel")

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
            product = self._scaled(first, row, column, inside, width)
            known = {linear.op.results[0]: self._biased(product, column, inside, width)}
        else:
            # Blocks of 8 columns of gate and of up take turns in the product.
            at = column + (column & ~7)
            gate, up = (self._scaled(f, row, at + 8 * i, inside, width) for i, f in enumerate(factors))
            known = {linear.glu.results[0]: activations.apply(enum_name(linear.glu.attributes["kind"]), gate) * up}
        known |= loaded or {}
        loaders = {a: (lambda a=a: self._load(a, row, column, inside, width)) for a in linear.addends}
        return Replay(self._k, known, loaders).value(target if target is not None else linear.result)

    def _scaled(self, product: Value, row: Value, column: Value, inside: Value | None, width: int) -> Value:
        """The product times the scales of its row and, from `column` of the product on, of its columns."""
        of_rows, of_columns = self._linear.input_scale, self._linear.weight_scale
        if of_rows is None or of_columns is None:
            return product
        columns = self._k.load(self._extra[of_columns], column, count=width, condition=inside)
        return product * columns * self._k.load(self._extra[of_rows], row, condition=inside)

    def _biased(self, product: Value, column: Value, inside: Value | None, width: int) -> Value:
        bias = self._linear.bias
        if bias is None:
            return product
        return product + self._k.load(self._extra[bias], column, count=width, condition=inside).to(t.f32())

    def load(self, value: ir.Value, row: Value, column: Value, width: int) -> Value:
        """Elements of an operand of the epilogue, as float32."""
        return self._load(value, row, column, None, width)

    def _load(self, value: ir.Value, row: Value, column: Value, inside: Value | None, width: int) -> Value:
        memory = self._extra[value]
        if len(shape(value)) == 1:
            return self._k.load(memory, column, count=width, condition=inside).to(t.f32())
        at = row.to(t.i64()) * self._linear.columns + column.to(t.i64())
        return self._k.load(memory, at, count=width, condition=inside).to(t.f32())
