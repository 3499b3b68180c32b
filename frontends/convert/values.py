"""What a torch value becomes during conversion.

Torch programs carry a batch dimension of size 1 in front of almost everything; `llm` IR has none. A `Tensor` knows its
torch shape and whether the MLIR value drops the leading unit dimension (`folded`). The rule is by shape alone: any
activation of rank 2 or more whose leading dimension is statically 1 is folded. Dropping a leading 1 never changes how
dimensions align from the right, so broadcasting needs no special case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mlir import ir

#: Sizes of a tensor; None is dynamic.
Shape = tuple[int | None, ...]


def static_elements(shape: Shape) -> int:
    """The product of the static sizes."""
    return math.prod(size for size in shape if size is not None)


def static_shape(shape: Shape) -> tuple[int, ...]:
    """The same shape, known to have no dynamic dimension."""
    sizes = tuple(size for size in shape if size is not None)
    assert len(sizes) == len(shape), shape
    return sizes


def is_folded_shape(shape: Shape) -> bool:
    return len(shape) >= 2 and shape[0] == 1


def folded(shape: Shape) -> Shape:
    """The shape of the MLIR value that stands for an activation of this torch shape."""
    return shape[1:] if is_folded_shape(shape) else shape


@dataclass(frozen=True)
class Tensor:
    """An activation: its MLIR value, in folded form, and its torch shape."""

    value: ir.Value
    shape: Shape

    @property
    def element_type(self) -> ir.Type:
        return ir.RankedTensorType(self.value.type).element_type


@dataclass(frozen=True)
class Weight:
    """A parameter or buffer that no op has read yet; `transposed` exchanges its two dimensions."""

    name: str
    stored_shape: tuple[int, ...]
    transposed: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.stored_shape[::-1] if self.transposed else self.stored_shape


#: A tensor operand of a torch operator.
Operand = Tensor | Weight


@dataclass(frozen=True)
class DynamicSize:
    """A size that depends on the number of tokens: `factor` times the size of one dynamic dimension, plus `offset`."""

    factor: int = 1
    offset: int = 0


#: An integer that torch computes from sizes.
Size = int | DynamicSize


@dataclass(frozen=True)
class MaskToken:
    """The causal mask with a sliding window (0: none), on its way from the mask function to an attention."""

    window: int
