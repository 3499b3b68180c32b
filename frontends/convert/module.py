"""Walks a torch dialect module and builds the `llm` module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir import ir
from mlir.dialects import arith, func, tensor
from torch_mlir import ir as torch_ir

import llmc.dialects
from llmc.errors import bulleted
from llmc.frontends.convert.builder import Builder
from llmc.frontends.convert.parameters import Parameters
from llmc.frontends.convert.registry import handler_of, is_supported, read_operands
from llmc.frontends.convert.torch_op import Locations, ResultType, TorchOp, describe, tensor_type
from llmc.frontends.convert.values import Shape, Tensor, Weight, folded, static_elements
from llmc.frontends.errors import FrontendError
from llmc.frontends.parameter_source import ParameterSource

_FUNCTION = "step"
_RESHAPES = ("aten.view", "aten.reshape", "aten._unsafe_view", "aten.flatten", "aten.unflatten")


@dataclass(frozen=True)
class Conversion:
    module: ir.Module
    #: Parameter symbol -> checkpoint tensor.
    tensors: dict[str, str]


def convert_module(
    torch_module: torch_ir.Module,
    sources: dict[str, ParameterSource],
    context: ir.Context | None = None,
    argument_names: tuple[str, ...] = (),
    one_dynamic_size: bool = False,
) -> Conversion:
    """The `llm` module that computes what function `step` of the torch module computes.

    `one_dynamic_size` says that all dynamic dimensions of the inputs have the same size.
    Only ops that the results need are converted; position and mask arithmetic that the attention op made dead is not.
    """
    context = llmc.dialects.register(context or ir.Context())
    body = (
        next(
            op
            for op in torch_module.body.operations
            if torch_ir.StringAttr(op.attributes["sym_name"]).value == _FUNCTION
        )
        .regions[0]
        .blocks[0]
    )
    with context, ir.Location.unknown():
        module = ir.Module.create()
        anchor = module.body
        parameters = Parameters(sources, ir.InsertionPoint(anchor))
        _Walk(body, parameters, anchor, argument_names, one_dynamic_size).run()
    module.operation.verify()
    return Conversion(module, parameters.used)


class _Walk:
    def __init__(
        self,
        body: torch_ir.Block,
        parameters: Parameters,
        anchor: ir.Block,
        argument_names: tuple[str, ...],
        one_dynamic_size: bool,
    ):
        self._body = body
        self._parameters = parameters
        self._one_dynamic_size = one_dynamic_size
        self._anchor = anchor
        self._argument_names = argument_names
        self._values: dict[torch_ir.Value, Any] = {}
        self._locations = Locations()

    def run(self) -> None:
        operations = [TorchOp.of(op) for op in self._body.operations]
        live = self._live(operations)
        self._refuse_unsupported(live)
        self._builder = Builder(self._parameters)
        shapes, inputs = zip(*(self._argument(argument.type) for argument in self._body.arguments), strict=True)
        with ir.InsertionPoint(self._anchor):
            function = func.FuncOp(_FUNCTION, (inputs, []))
        block = function.add_entry_block(self._argument_locations(len(inputs)))
        for argument, value, shape in zip(self._body.arguments, block.arguments, shapes, strict=True):
            self._values[argument] = Tensor(value, shape)
        if self._one_dynamic_size and not any(map(_merges_dynamic_dimension, live)):
            self._builder = Builder(self._parameters, tokens=_SharedSize(block).get)
        with ir.InsertionPoint(block):
            for op in live:
                with self._locations.of(op.operation):
                    self._convert(op)
            results = [self._builder.read(self._values[operand]).value for operand in operations[-1].operation.operands]
            func.ReturnOp(results)
        _erase_dead(block)
        function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(inputs, [result.type for result in results])
        )
        # Declarations stand before the function.
        parameters_end = [op for op in self._anchor.operations if op.operation.name == "llm.parameter"]
        if parameters_end:
            function.move_after(parameters_end[-1])

    def _live(self, operations: list[TorchOp]) -> list[TorchOp]:
        """The ops that the return needs, in order, without the return itself."""
        needed = set(operations[-1].operation.operands)
        live = []
        for op in reversed(operations[:-1]):
            if any(result in needed for result in op.operation.results):
                needed.update(operand for operand in _read_operands(op) if operand is not None)
                live.append(op)
        return live[::-1]

    def _refuse_unsupported(self, live: list[TorchOp]) -> None:
        places: dict[str, list[str]] = {}
        for op in live:
            if not is_supported(op.name):
                places.setdefault(op.name, []).append(describe(self._locations.of(op.operation)))
        if places:
            lines = [
                f"{name} in {found[0]}" + (f" and {len(found) - 1} more places" if len(found) > 1 else "")
                for name, found in sorted(places.items())
            ]
            raise FrontendError(f"unsupported operators:\n{bulleted(lines)}")

    def _argument(self, type: torch_ir.Type) -> tuple[Shape, ir.Type]:
        """The torch shape of an input, and the type of the function argument that stands for it."""
        result = tensor_type(type)
        if result is None or result.element == "bool":
            raise FrontendError(f"unsupported input of type {type}: inputs are float or integer tensors")
        element = self._builder.f32 if result.element == "float" else self._builder.i32
        return result.shape, self._builder.type(folded(result.shape), element)

    def _argument_locations(self, count: int) -> list[ir.Location]:
        names = self._argument_names or tuple(f"input{index}" for index in range(count))
        return [ir.Location.name(name) for name in names]

    def _convert(self, op: TorchOp) -> None:
        operands = [None if operand is None else self._values[operand] for operand in _read_operands(op)]
        try:
            outcome = handler_of(op.name)(self._builder, op, *operands)
        except FrontendError as error:
            raise FrontendError(f"{op.name} in {describe(ir.Location.current)}: {error}") from None
        results = list(op.operation.results)
        outcomes = outcome if len(results) > 1 else [outcome]
        for result, type, value in zip(results, op.results, outcomes, strict=True):
            if type is not None and isinstance(value, (Tensor, Weight)):
                _check_shape(op, value, type)
            self._values[result] = value


def _read_operands(op: TorchOp) -> list[torch_ir.Value | None]:
    return read_operands(op.name, list(op.operation.operands))


def _check_shape(op: TorchOp, value: Tensor | Weight, type: ResultType) -> None:
    """Guards against handlers that disagree with torch."""
    if tuple(value.shape) != type.shape:
        place = describe(ir.Location.current)
        raise FrontendError(f"internal: {op.name} in {place} became {value.shape}, expected {type.shape}")


def _erase_dead(block: ir.Block) -> None:
    """Erases what handlers built and nothing used; all ops before the terminator are pure."""
    for op in reversed(list(block.operations)[:-1]):
        if all(next(iter(result.uses), None) is None for result in op.operation.results):
            op.operation.erase()


def _merges_dynamic_dimension(op: TorchOp) -> bool:
    """Whether a reshape makes one dimension of a dynamic and a static one, so that its size is not that of an input."""
    if not op.name.startswith(_RESHAPES):
        return False
    source, target = tensor_type(op.operation.operands[0].type), op.results[0]
    if source is None or target is None:
        return False
    return static_elements(source.shape) != static_elements(target.shape)


class _SharedSize:
    """The size of the first dynamic dimension of a block's arguments, computed once at its start."""

    def __init__(self, block: ir.Block):
        self._block = block
        self._value: ir.Value | None = None

    def get(self) -> ir.Value:
        if self._value is None:
            with ir.InsertionPoint.at_block_begin(self._block), ir.Location.unknown():
                argument, axis = next(
                    (argument, axis)
                    for argument in self._block.arguments
                    for axis, size in enumerate(ir.RankedTensorType(argument.type).shape)
                    if size == ir.ShapedType.get_dynamic_size()
                )
                index = arith.ConstantOp(ir.IndexType.get(), axis).result
                self._value = tensor.DimOp(argument, index).result
        return self._value
