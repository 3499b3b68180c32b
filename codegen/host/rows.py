"""Which of the step's sizes each kernel's rows are: tokens, or rows that get logits."""

from __future__ import annotations

from typing import Any

from mlir import ir

from ..kernel import Expression

# Size of the leading dimension of @step's arguments, by position (docs/architecture.md, 1.1);
# what follows the cache are the sampling parameters, one a logit row.
_ARGUMENT_ROWS = ("T", "T", "R", None, None)


def rows_of_kernels(module: ir.Module) -> dict[str, Expression]:
    """`T` or `R` for each `llm.kernel`; without @step, what the kernel alone tells."""
    kernels = {_name(op): op for op in module.body.operations if op.operation.name == "llm.kernel"}
    rows = {name: "R" if _gathers(op) else "T" for name, op in kernels.items()}
    found: dict[str, set[str]] = {}
    for step in module.body.operations:
        if step.operation.name == "func.func" and _name(step) == "step":
            for name, size in _launches(step, kernels):
                found.setdefault(name, set()).add(size)
    for name, sizes in found.items():
        if len(sizes) != 1:
            raise NotImplementedError(f"@{name} is launched on both tokens and logit rows")
        rows[name] = sizes.pop()
    return dict(rows)


def _launches(step: Any, kernels: dict[str, Any]) -> list[tuple[str, str]]:
    block = step.operation.regions[0].blocks[0]
    sizes: dict[ir.Value, str] = {}
    for i, argument in enumerate(block.arguments):
        size = _ARGUMENT_ROWS[i] if i < len(_ARGUMENT_ROWS) else "R"
        if size is not None:
            sizes[argument] = size
    result = []
    for op in block.operations:
        if op.operation.name != "llm.launch":
            continue
        name = ir.FlatSymbolRefAttr(op.operation.attributes["kernel"]).value
        known = {sizes[v] for v in op.operation.operands if v in sizes}
        # A gather selects from tokens and makes logit rows.
        size = "R" if _gathers(kernels[name]) or known == {"R"} else "T"
        for value in op.operation.results:
            sizes[value] = size
        result.append((name, size))
    return result


def _gathers(kernel: Any) -> bool:
    return any(op.operation.name == "llm.gather_rows" for op in kernel.operation.regions[0].blocks[0].operations)


def _name(op: Any) -> str:
    return ir.StringAttr(op.operation.attributes["sym_name"]).value
