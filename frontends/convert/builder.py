"""Builds `llm`-level IR: what the operator handlers are written with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from mlir import ir
from mlir.dialects import arith, tensor

from llmc.dialects import llm
from llmc.frontends.convert import reshape as reshaping
from llmc.frontends.convert.parameters import Parameters
from llmc.frontends.convert.values import Operand, Shape, Tensor, Weight, folded, is_folded_shape
from llmc.frontends.errors import FrontendError

_DYNAMIC = ir.ShapedType.get_dynamic_size()


class Builder:
    """Emits ops at the current insertion point and location, and hides how batch dimensions are folded."""

    def __init__(self, parameters: Parameters, tokens: Callable[[], ir.Value] | None = None):
        """`tokens` gives the size of every dynamic dimension, where all are known to be the same."""
        self.parameters = parameters
        self._tokens = tokens
        self.f32 = ir.F32Type.get()
        self.i32 = ir.IntegerType.get_signless(32)
        self.i1 = ir.IntegerType.get_signless(1)

    # Types and constants.

    def type(self, shape: Shape, element: ir.Type) -> ir.RankedTensorType:
        """The MLIR tensor type of exactly this shape."""
        return ir.RankedTensorType.get([_DYNAMIC if size is None else size for size in shape], element)

    def scalar(self, number: float, element: ir.Type) -> ir.Value:
        """A constant tensor of rank 0."""
        attribute = (
            ir.FloatAttr.get(element, float(number)) if _is_float(element) else ir.IntegerAttr.get(element, int(number))
        )
        type = ir.RankedTensorType.get([], element)
        return arith.ConstantOp(type, ir.DenseElementsAttr.get_splat(type, attribute)).result

    def constant(self, array: np.ndarray) -> Tensor:
        """A small literal."""
        array = np.ascontiguousarray(array)
        element = self.f32 if np.issubdtype(array.dtype, np.floating) else self.i32
        array = array.astype(np.float32 if element == self.f32 else np.int32)
        type = ir.RankedTensorType.get(array.shape, element)
        value = arith.ConstantOp(type, ir.DenseElementsAttr.get(array, type=type)).result
        return self.folding(value, tuple(array.shape))

    # Between torch shapes and values.

    def read(self, operand: Operand) -> Tensor:
        """The operand as an activation; a weight is read and, if its leading dimension is 1, folded."""
        if isinstance(operand, Tensor):
            return operand
        if not isinstance(operand, Weight):
            raise FrontendError(f"expected a tensor, got {operand}")
        return self.folding(self.weight(operand), operand.shape)

    def weight(self, weight: Weight) -> ir.Value:
        """The value of a parameter in its own shape."""
        return self.parameters.read(weight)

    def unfolded_value(self, operand: Operand) -> ir.Value:
        """The operand in its full torch shape: a weight as it is declared, an activation with its leading 1."""
        return self.weight(operand) if isinstance(operand, Weight) else self.unfolded(operand)

    def optional_value(self, operand: Operand | None) -> ir.Value | None:
        return None if operand is None else self.unfolded_value(operand)

    def folding(self, value: ir.Value, shape: Shape) -> Tensor:
        """A value of the full torch shape, as a `Tensor`."""
        if not is_folded_shape(shape):
            return Tensor(value, shape)
        return Tensor(reshaping.emit(value, shape, folded(shape), self.type, self.size), shape)

    def unfolded(self, operand: Tensor) -> ir.Value:
        """The value in its full torch shape."""
        return reshaping.emit(operand.value, folded(operand.shape), operand.shape, self.type, self.size)

    def reshape(self, operand: Tensor, shape: Shape) -> Tensor:
        return Tensor(reshaping.emit(operand.value, folded(operand.shape), folded(shape), self.type, self.size), shape)

    def reshaped_value(self, value: ir.Value, source: Shape, target: Shape) -> ir.Value:
        return reshaping.emit(value, source, target, self.type, self.size)

    # Elementwise operands.

    def broadcast(
        self, operands: Sequence[Tensor | float], shape: Shape, element: ir.Type, like: Sequence[Tensor] = ()
    ) -> list[ir.Value]:
        """The operands, numbers included, in the folded form of `shape`, converted to `element`.

        Sizes of new dynamic dimensions come from the operands and the tensors in `like`.
        """
        target = folded(shape)
        tensors = [*(operand for operand in operands if isinstance(operand, Tensor)), *like]
        values = []
        for operand in operands:
            if isinstance(operand, Tensor):
                source, value = folded(operand.shape), self.cast(operand.value, element)
            else:
                source, value = (), self.scalar(operand, element)
            values.append(self._broadcast(value, source, target, tensors))
        return values

    def expand(self, operand: Tensor, shape: Shape, like: Sequence[Tensor] = ()) -> Tensor:
        """NumPy broadcasting to `shape`; sizes of new dynamic dimensions come from the tensors in `like`."""
        value = self._broadcast(operand.value, folded(operand.shape), folded(shape), [operand, *like])
        return Tensor(value, shape)

    def _broadcast(self, value: ir.Value, source: Shape, target: Shape, tensors: Sequence[Tensor]) -> ir.Value:
        if source == target:
            return value
        aligned = (1,) * (len(target) - len(source)) + source
        sizes = [
            self._size_from(tensors, len(target) - position)
            for position, (have, want) in enumerate(zip(aligned, target, strict=True))
            if have == 1 and want is None
        ]
        result = self.type(target, ir.RankedTensorType(value.type).element_type)
        return llm.BroadcastOp(result, value, sizes).result

    def _size_from(self, tensors: Sequence[Tensor], from_right: int) -> ir.Value:
        """The size of the dynamic dimension at this distance from the right, taken from whichever tensor has it."""
        for operand in tensors:
            shape = folded(operand.shape)
            if len(shape) >= from_right and shape[-from_right] is None:
                return self.size(operand.value, len(shape) - from_right)
        raise FrontendError("no operand has the dynamic dimension of the result")

    def size(self, value: ir.Value, dimension: int, factor: int = 1) -> ir.Value:
        """The size of a dynamic dimension, divided by `factor`."""
        if self._tokens is not None:
            return self._tokens()
        index = ir.IndexType.get()
        size = tensor.DimOp(value, arith.ConstantOp(index, dimension).result).result
        return size if factor == 1 else arith.DivUIOp(size, arith.ConstantOp(index, factor).result).result

    def cast(self, value: ir.Value, element: ir.Type) -> ir.Value:
        """Converts between integers and float32; float32 stays what it is."""
        type = ir.RankedTensorType(value.type)
        source = type.element_type
        if source == element:
            return value
        result = ir.RankedTensorType.get(type.shape, element)
        if _is_float(element):
            return (arith.UIToFPOp if source == self.i1 else arith.SIToFPOp)(result, value).result
        if _is_float(source):
            return arith.FPToSIOp(result, value).result
        if source == self.i1:
            return arith.ExtUIOp(result, value).result
        return arith.TruncIOp(result, value).result

    # Slices.

    def slice(self, operand: Tensor, dimension: int, start: int, length: int, step: int = 1) -> Tensor:
        """Elements `start, start + step, ...` of a dimension of static size; `dimension` counts in torch's shape."""
        shape = list(operand.shape)
        shape[dimension] = length
        if is_folded_shape(operand.shape) and dimension == 0:
            return operand  # of a leading 1, only itself can be taken
        position = dimension - is_folded_shape(operand.shape)
        rank = len(folded(operand.shape))
        sizes, dynamic = [], []
        for axis, size in enumerate(folded(tuple(operand.shape))):
            if axis == position:
                size = length
            sizes.append(_DYNAMIC if size is None else size)
            if size is None:
                dynamic.append(self.size(operand.value, axis))
        offsets, strides = [0] * rank, [1] * rank
        offsets[position], strides[position] = start, step
        result = ir.RankedTensorType.get(sizes, operand.element_type)
        if length == 0:
            return Tensor(ir.Operation.create("tensor.empty", [result], dynamic).result, tuple(shape))
        value = tensor.ExtractSliceOp(result, operand.value, [], dynamic, [], offsets, sizes, strides).result
        kept = tuple(shape[1:] if is_folded_shape(operand.shape) else shape)
        return self._refold(value, kept, tuple(shape))

    def _refold(self, value: ir.Value, have: Shape, shape: Shape) -> Tensor:
        """A value of shape `have` (the torch shape with or without a leading 1) in folded form."""
        return Tensor(reshaping.emit(value, have, folded(shape), self.type, self.size), shape)

    def transpose(self, value: ir.Value, permutation: Sequence[int]) -> ir.Value:
        if list(permutation) == list(range(len(permutation))):
            return value
        type = ir.RankedTensorType(value.type)
        result = ir.RankedTensorType.get([type.shape[source] for source in permutation], type.element_type)
        return llm.TransposeOp(result, value, list(permutation)).result


def _is_float(element: ir.Type) -> bool:
    return isinstance(element, (ir.F32Type, ir.F16Type, ir.BF16Type, ir.F64Type))
