"""What the driver reads from and writes into a module: parameters and workspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from llmc.compiler.dtypes import BY_MLIR
from llmc.compiler.weights import Weight
from llmc.errors import InternalError

if TYPE_CHECKING:
    from mlir import ir


def read_parameters(module: ir.Module) -> list[Weight]:
    """All parameters in the order of declaration."""
    with module.context:
        return [_weight(op) for op in module.body.operations if op.operation.name == "llm.parameter"]


def set_workspaces(module: ir.Module, sizes: dict[str, int]) -> None:
    """Writes the scratch memory in bytes of each `llm.kernel` into its `workspace`."""
    from mlir import ir

    with module.context:
        for op in module.body.operations:
            if op.operation.name != "llm.kernel":
                continue
            size = sizes.get(ir.StringAttr(op.operation.attributes["sym_name"]).value, 0)
            if size:
                i64 = ir.IntegerType.get_signless(64)
                op.operation.attributes["workspace"] = ir.IntegerAttr.get(i64, size)


def _weight(op: ir.OpView) -> Weight:
    from mlir import ir

    attributes = op.operation.attributes
    name = ir.StringAttr(attributes["sym_name"]).value
    type = ir.RankedTensorType(ir.TypeAttr(attributes["type"]).value)
    element = str(type.element_type)
    if element not in BY_MLIR:
        raise InternalError(f"parameter {name} has element type {element}, which engines cannot store")
    recipe = _text(attributes, "recipe")
    value = _value(attributes["value"], type.shape) if "value" in attributes else None
    if (recipe is None) == (value is None):
        raise InternalError(f"parameter {name} needs either a recipe or a value")
    return Weight(
        name=name,
        dtype=BY_MLIR[element],
        shape=tuple(type.shape),
        recipe=recipe,
        value=value,
        layout=_text(attributes, "layout"),
    )


def _text(attributes: ir.OpAttributeMap, name: str) -> str | None:
    return str(attributes[name]) if name in attributes else None


def _value(attribute: ir.Attribute, shape: list[int]) -> np.ndarray:
    """Values of a dense attribute as float32 (the buffer protocol knows no bfloat16)."""
    from mlir import ir

    try:
        return np.array(attribute, dtype=np.float32).reshape(shape)
    except (TypeError, ValueError):
        elements = ir.DenseFPElementsAttr(attribute)
        return np.array([elements[i] for i in range(len(elements))], dtype=np.float32).reshape(shape)
