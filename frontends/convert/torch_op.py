"""A view of one op of the torch dialect, and of its types."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mlir import ir
from torch_mlir import ir as torch_ir

from llmc.frontends.convert.values import Shape

# The torch dialect's types have no Python classes: their assembly is all there is to read.
_TENSOR_TYPE = re.compile(r"!torch\.vtensor<\[([^\]]*)\],([a-z0-9]+)>")

_INTEGERS = {"si64", "si32", "si16", "si8", "ui8"}
_FLOATS = {"f32", "f64", "f16", "bf16"}


@dataclass(frozen=True)
class ResultType:
    shape: Shape
    element: str  # "float", "int" or "bool"


def tensor_type(type: torch_ir.Type) -> ResultType | None:
    """Shape and kind of a tensor type; None for any other type or an element type that `llm` has not."""
    match = _TENSOR_TYPE.fullmatch(str(type))
    if not match:
        return None
    shape = tuple(None if size == "?" else int(size) for size in match[1].split(",") if size)
    if match[2] in _FLOATS:
        return ResultType(shape, "float")
    if match[2] in _INTEGERS:
        return ResultType(shape, "int")
    return ResultType(shape, "bool") if match[2] == "i1" else None


@dataclass(frozen=True)
class TorchOp:
    operation: torch_ir.Operation
    #: Without the leading "torch.": "aten.linear", "prim.ListConstruct", "llmc.attention".
    name: str
    results: tuple[ResultType | None, ...] = field(default=())

    @staticmethod
    def of(op: torch_ir.OpView | torch_ir.Operation) -> TorchOp:
        operation = op.operation  # an OpView with an attribute `name` hides the name of the op
        name = operation.name
        if name == "torch.operator":
            name = torch_ir.StringAttr(operation.attributes["name"]).value
        return TorchOp(
            operation, name.removeprefix("torch."), tuple(tensor_type(result.type) for result in operation.results)
        )

    @property
    def result(self) -> ResultType:
        """The type of the only tensor result."""
        assert self.results and self.results[0] is not None, self.name
        return self.results[0]

    def attribute(self, name: str) -> torch_ir.Attribute:
        return self.operation.attributes[name]


class Locations:
    """Carries locations from torch-mlir's context to ours."""

    def __init__(self) -> None:
        self._known: dict[str, ir.Location] = {}

    def of(self, operation: torch_ir.Operation) -> ir.Location:
        text = str(operation.location)
        if text not in self._known:
            self._known[text] = ir.Location.from_attr(ir.Attribute.parse(text))
        return self._known[text]


def describe(location: ir.Location) -> str:
    """`module path (file:line)` for messages."""
    if location.is_a_name():
        return f"{location.name_str} ({describe(location.child_loc)})"
    if location.is_a_file():
        return f"{location.filename}:{location.start_line}"
    return "an unknown place"
