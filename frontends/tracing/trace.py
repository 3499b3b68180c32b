"""torch.export, with errors that say which model and why."""

from __future__ import annotations

from typing import Any

import torch

from llmc.frontends.errors import FrontendError

_MAX_TOKENS = 1 << 20
#: An example length that no dimension of a real model equals, to make accidental specialisation visible.
_EXAMPLE_TOKENS = 37

#: Runtime checks that export leaves in the graph; they compute nothing.
_CHECKS = frozenset(
    {
        torch.ops.aten._assert_tensor_metadata.default,
        torch.ops.aten._assert_scalar.default,
        torch.ops.aten._assert_async.msg,
        torch.ops.aten.sym_constrain_range.default,
        torch.ops.aten.sym_constrain_range_for_size.default,
    }
)


def export_decoder(step: torch.nn.Module) -> torch.export.ExportedProgram:
    """Exports `step(input_ids[1, T], position_ids[1, T])` with T dynamic."""
    tokens = torch.export.Dim("T", min=2, max=_MAX_TOKENS)
    # Two tensors: export merges inputs that are one object.
    example = tuple(torch.zeros(1, _EXAMPLE_TOKENS, dtype=torch.long, device="meta") for _ in range(2))
    return export(step, example, dynamic_shapes=({1: tokens}, {1: tokens}))


def export(
    module: torch.nn.Module, example_inputs: tuple[Any, ...], dynamic_shapes: Any = None
) -> torch.export.ExportedProgram:
    """Exports any module; runtime checks and dead nodes are removed from the graph."""
    try:
        with torch.no_grad():
            program = torch.export.export(module, example_inputs, dynamic_shapes=dynamic_shapes, strict=False)
    except FrontendError:
        raise
    except Exception as error:  # torch.export raises whatever the traced code raises
        if isinstance(error.__cause__, FrontendError):
            raise error.__cause__ from None
        reason = f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}"
        if "Constraints violated" in reason:
            reason = "its graph depends on the number of tokens in a way that torch.export cannot express"
        raise FrontendError(f"torch.export cannot trace {_name_of(module)}: {reason}") from error
    graph = program.graph
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and node.target in _CHECKS:
            graph.erase_node(node)
    graph.eliminate_dead_code()
    return program


def calls(program: torch.export.ExportedProgram, operator: object) -> int:
    """How many nodes call an operator."""
    return sum(node.op == "call_function" and node.target is operator for node in program.graph.nodes)


def has_one_dynamic_size(program: torch.export.ExportedProgram) -> bool:
    """Whether all dynamic dimensions of the user's inputs are the same symbol."""
    symbols = set()
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder" and isinstance(value, torch.Tensor):
            symbols |= {str(size) for size in value.shape if not isinstance(size, int)}
    return len(symbols) == 1


def _name_of(module: torch.nn.Module) -> str:
    return type(getattr(module, "model", module)).__name__
