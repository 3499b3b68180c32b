"""Reads the body of an `llm.kernel`: its arguments, its anchor op, what is yielded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mlir import ir

from llmc.compiler.dtypes import BY_MLIR

from ..builder import types as t
from ..kernel import Argument, UnsupportedKernel


@dataclass(frozen=True)
class Body:
    """One `llm.kernel` and the questions that generators ask of it."""

    kernel: Any

    @property
    def name(self) -> str:
        return ir.StringAttr(self.kernel.attributes["sym_name"]).value

    @property
    def block(self) -> ir.Block:
        return self.kernel.regions[0].blocks[0]

    @property
    def ops(self) -> list[Any]:
        return [op.operation for op in self.block.operations]

    @property
    def results(self) -> list[ir.Value]:
        """The yielded values, in result order."""
        return list(self.ops[-1].operands)

    def find(self, name: str) -> Any:
        """The only op of that name; raises UnsupportedKernel when there is none or several."""
        found = self.all(name)
        if len(found) != 1:
            raise UnsupportedKernel(f"@{self.name}: expected one {name}, found {len(found)}")
        return found[0]

    def all(self, name: str) -> list[Any]:
        return [op for op in self.ops if op.name == name]

    def operand(self, value: ir.Value, part: str | None = None) -> Argument:
        """The launch argument for a block argument (or one part of a handle)."""
        index = self.index(value)
        return {"operand": index} if part is None else {"operand": index, "part": part}

    def index(self, value: ir.Value) -> int:
        for index, argument in enumerate(self.block.arguments):
            if argument == value:
                return index
        raise UnsupportedKernel(f"@{self.name}: {value} is not an argument of the kernel")

    def is_argument(self, value: ir.Value) -> bool:
        return any(argument == value for argument in self.block.arguments)


def shape(value: ir.Value) -> list[int | None]:
    """Sizes of a tensor value; None where dynamic."""
    type_ = ir.RankedTensorType(value.type)
    return [None if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]


def last(value: ir.Value) -> int:
    """Size of the last dimension, which must be static."""
    size = shape(value)[-1]
    if size is None:
        raise UnsupportedKernel(f"expected a static last dimension, got {value.type}")
    return size


def row_length(value: ir.Value) -> int:
    """Elements of one row: of all dimensions but the first, or of a vector; they must be static."""
    sizes = shape(value)[1:] if len(shape(value)) > 1 else shape(value)
    if not sizes or None in sizes:
        raise UnsupportedKernel(f"expected rows of a static length, got {value.type}")
    return math.prod(size for size in sizes if size is not None)


def element(value: ir.Value) -> ir.Type:
    return ir.RankedTensorType(value.type).element_type


def pointer(value: ir.Value, *, weight: bool = False) -> ir.Type:
    """`!tile.ptr` of a tensor's element type."""
    return t.ptr(element(value), constant=weight)


def f64(op: Any, name: str) -> float:
    return ir.FloatAttr(op.attributes[name]).value


def dtype_name(type_: ir.Type) -> str:
    """Its name in a plan."""
    return BY_MLIR[str(type_)].name


def bytes_of(type_: ir.Type) -> int:
    return type_.width // 8
