"""torch-mlir's FxImporter, with parameters as names and locations that tell the module.

torch-mlir embeds its own MLIR, which lives in the process beside ours; nothing of it leaves this package except through
`convert`.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch_mlir import ir
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.extras.fx_importer import ContextCache, FxImporter, FxImporterHooks, GraphNodeImporter

from llmc.errors import first_line
from llmc.frontends.errors import FrontendError

#: The operator that stands for a parameter or buffer, and the attribute that names it.
WEIGHT_OPERATOR = "llmc.weight"
WEIGHT_NAME = "llmc.name"

#: Larger tensors without a name would be model weights in disguise.
_MAX_LITERAL_ELEMENTS = 4096


class _Locations(ContextCache):
    """Gives each op `"module.path"("file":line)` of the innermost frame instead of the whole call stack."""

    __slots__ = ("_wrapper",)

    def __init__(self, importer: FxImporter, wrapper: str):
        super().__init__(importer._c, py_attr_tracker=importer._py_attr_tracker)
        self._wrapper = wrapper

    def get_node_location(self, node: torch.fx.Node) -> ir.Location | None:
        frames = re.findall(r'File "([^"]+)", line ([0-9]+)', node.meta.get("stack_trace") or "")
        if not frames:
            return None
        file, line = frames[-1]
        source = ir.Location.file(_portable(file), int(line), 0, context=self._c)
        path = _module_path(node, self._wrapper)
        return ir.Location.name(path, source, context=self._c) if path else source


def _module_path(node: torch.fx.Node, wrapper: str) -> str:
    """The dotted path of the module that issued a node, below the wrapper that was exported."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = stack[-1][0] if stack else ""
    return "" if f"{path}." == wrapper else path.removeprefix(wrapper)


def _portable(file: str) -> str:
    """Paths below site-packages, so that IR does not depend on where packages are installed."""
    return re.sub(r"^.*/(?:site|dist)-packages/", "", file)


class _NamedWeights(FxImporterHooks):
    """Turns every parameter and buffer into `torch.operator "llmc.weight"` with its name."""

    def __init__(self, names: dict[int, str]):
        self._names = names

    def resolve_literal(self, gni: GraphNodeImporter, literal: Any, info: object) -> ir.Value | None:
        if not isinstance(literal, torch.Tensor):
            return None
        name = self._names.get(id(literal))
        if name is not None:
            return ir.Operation.create(
                "torch.operator",
                results=[gni._cc.tensor_to_vtensor_type(literal)],
                attributes={"name": ir.StringAttr.get(WEIGHT_OPERATOR), WEIGHT_NAME: ir.StringAttr.get(name)},
            ).result
        if literal.is_meta or literal.numel() > _MAX_LITERAL_ELEMENTS:
            raise FrontendError(
                f"the model creates a constant of shape {list(literal.shape)} that has no name or value"
            )
        return None


def import_program(program: torch.export.ExportedProgram, wrapper: str = "") -> ir.Module:
    """The exported program as a torch dialect module with one function, `step`.

    `wrapper` is the prefix of names, such as "model.", that the exported wrapper put before those of the model.
    """
    context = ir.Context()
    torch_dialect.register_dialect(context)
    state = program.state_dict
    names: dict[int, str] = {}
    signature = program.graph_signature
    for name in signature.inputs_to_buffers.values():
        if name not in state:  # buffers that are not persistent
            state[name] = program.constants[name]
    for name in [*signature.inputs_to_parameters.values(), *signature.inputs_to_buffers.values()]:
        names.setdefault(id(state[name]), name.removeprefix(wrapper))
    importer = FxImporter(context=context, hooks=_NamedWeights(names), config_check=False)
    importer._cc = _Locations(importer, wrapper)
    try:
        importer.import_frozen_program(program, func_name="step")
    except (NotImplementedError, TypeError, KeyError, AssertionError) as error:
        reason = first_line(error)
        raise FrontendError(f"torch-mlir cannot import the exported graph: {reason}") from error
    return importer.module
