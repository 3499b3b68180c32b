"""Replays the elementwise ops of an `llm.kernel` body on the values of a tile kernel.

A kernel's anchor (a multiply, a norm, ...) gives elements with coordinates; what stands after
it in the body (bias, activation, residual, casts) is applied to those elements one op at a
time, in float32. So an epilogue is whatever the compiler fused: no list of known epilogues.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from mlir import ir

from ..builder import KernelBuilder, Value, constant
from ..builder import types as t
from ..kernel import UnsupportedKernel
from . import activations
from .body import row_length

Loader = Callable[[], Value]
"""Loads an operand's elements at the coordinates at hand, as float32."""


class Replay:
    """Elementwise evaluation of a body at one place.

    `known` maps values of the body to what they are here; `operands` maps block arguments
    (and other values) to functions that load them when first needed.
    """

    def __init__(self, k: KernelBuilder, known: Mapping[ir.Value, Value], operands: Mapping[ir.Value, Loader]):
        self._k = k
        self._known = dict(known)
        self._operands = dict(operands)

    def value(self, source: ir.Value) -> Value:
        """The element(s) of a tensor of the body, as float32."""
        if source in self._known:
            return self._known[source]
        load = self._operands.get(source)
        result = self._apply(source.owner) if load is None else load()
        self._known[source] = result
        return result

    def _apply(self, op: ir.Operation) -> Value:
        name = op.operation.name
        handler = _HANDLERS.get(name)
        if handler is None:
            raise UnsupportedKernel(f"an epilogue cannot apply {name}, at {op.operation.location}")
        return handler(self, op.operation)

    # -- handlers --------------------------------------------------------------------------

    def _pass_through(self, op: ir.Operation) -> Value:
        # Casts are free: everything here is float32 until it is stored.
        return self.value(op.operands[0])

    def _reshape(self, op: ir.Operation) -> Value:
        # Rows are read by the element, however many dimensions they have.
        if row_length(op.operands[0]) != row_length(op.results[0]):
            raise UnsupportedKernel(f"{op.name} that changes the rows, at {op.location}")
        return self.value(op.operands[0])

    def _binary(self, op: ir.Operation) -> Value:
        lhs, rhs = self.value(op.operands[0]), self.value(op.operands[1])
        return {
            "arith.addf": lambda: lhs + rhs,
            "arith.subf": lambda: lhs - rhs,
            "arith.mulf": lambda: lhs * rhs,
            "arith.divf": lambda: lhs / rhs,
            "arith.maximumf": lambda: lhs.max(rhs),
            "arith.minimumf": lambda: lhs.min(rhs),
        }[op.name]()

    def _negate(self, op: ir.Operation) -> Value:
        return -self.value(op.operands[0])

    def _splat(self, op: ir.Operation) -> Value:
        source = op.operands[0].owner
        if source.operation.name != "arith.constant":
            raise UnsupportedKernel(f"{op.name} of a value that is no constant at {op.location}")
        return constant(ir.FloatAttr(source.attributes["value"]).value, t.f32())

    def _constant(self, op: ir.Operation) -> Value:
        attribute = op.attributes["value"]
        if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
            attribute = attribute.get_splat_value()
        return constant(ir.FloatAttr(attribute).value, t.f32())

    def _tanh(self, op: ir.Operation) -> Value:
        return activations.tanh(self.value(op.operands[0]))

    def _exp(self, op: ir.Operation) -> Value:
        return (self.value(op.operands[0]) * math.log2(math.e)).exp2()

    def _rsqrt(self, op: ir.Operation) -> Value:
        return self.value(op.operands[0]).rsqrt()

    def _activation(self, op: ir.Operation) -> Value:
        return activations.apply(enum_name(op.attributes["kind"]), self.value(op.operands[0]))

    def _glu(self, op: ir.Operation) -> Value:
        gate, up = self.value(op.operands[0]), self.value(op.operands[1])
        return activations.apply(enum_name(op.attributes["kind"]), gate) * up

    def _quantize(self, op: ir.Operation) -> Value:
        # The store rounds, and saturates.
        value, scale = self.value(op.operands[0]), self.value(op.operands[1])
        return value / scale


_HANDLERS: dict[str, Callable[[Replay, ir.Operation], Value]] = {
    "arith.extf": Replay._pass_through,
    "arith.truncf": Replay._pass_through,
    "tensor.cast": Replay._pass_through,
    "tensor.collapse_shape": Replay._reshape,
    "tensor.expand_shape": Replay._reshape,
    "arith.addf": Replay._binary,
    "arith.subf": Replay._binary,
    "arith.mulf": Replay._binary,
    "arith.divf": Replay._binary,
    "arith.maximumf": Replay._binary,
    "arith.minimumf": Replay._binary,
    "arith.negf": Replay._negate,
    "arith.constant": Replay._constant,
    "tensor.splat": Replay._splat,
    "llm.broadcast": Replay._pass_through,
    "math.tanh": Replay._tanh,
    "math.exp": Replay._exp,
    "math.rsqrt": Replay._rsqrt,
    "llm.activation": Replay._activation,
    "llm.glu": Replay._glu,
    "llm.quantize": Replay._quantize,
}


def enum_name(attribute: ir.Attribute) -> str:
    """`silu` of `#llm<activation_kind <silu>>`."""
    return str(attribute).rstrip(">").rsplit("<", 1)[-1].strip()
