"""Which weights `llm-assign-quantization` chose."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mlir import ir

_MARK = "llm.quantization"


def linear_parameters(module: ir.Module, marked: bool = False) -> list[str]:
    """Parameters that linears multiply by, in order, without repetitions.

    marked: only those of linears that are to be quantized.
    """
    return list(dict.fromkeys(name for name, mark in _linears(module) if mark or not marked))


def other_readers(module: ir.Module) -> set[str]:
    """Parameters that something else than a linear reads."""
    from mlir import ir

    found: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        for index, operand in enumerate(op.operands):
            name = _parameter(operand)
            if name is not None and not (op.name == "llm.linear" and index == 1):
                found.add(name)
        return ir.WalkResult.ADVANCE

    with module.context:
        module.operation.walk(visit)
    return found


def _linears(module: ir.Module) -> Iterator[tuple[str, bool]]:
    """The weight of each linear, and whether it is to be quantized."""
    from mlir import ir

    found: list[tuple[str, bool]] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "llm.linear" and (name := _parameter(op.operands[1])) is not None:
            found.append((name, _MARK in op.attributes))
        return ir.WalkResult.ADVANCE

    with module.context:
        module.operation.walk(visit)
    yield from found


def _parameter(value: ir.Value) -> str | None:
    """The parameter that a value reads."""
    from mlir import ir

    if not isinstance(value, ir.OpResult):
        return None
    operation = value.owner.operation
    if operation.name != "llm.weight":
        return None
    return str(ir.FlatSymbolRefAttr(operation.attributes["name"]).value)
