"""The pass pipelines of each phase."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llmc.compiler.options import ResolvedOptions
from llmc.compiler.quantization.stored import Assignment
from llmc.errors import ModelError

if TYPE_CHECKING:
    from mlir import ir

#: Passes whose diagnostics are about the user's model, not about llmc.
_CHECKS_OF_THE_MODEL = (
    "llm-verify-contract",
    "llm-raise-rope",
    "llm-convert-to-paged",
    "llm-form-kernels",
    "llm-assign-quantization",
)


def refusal(name: str, messages: str) -> ModelError | None:
    """What a failing pass says about the model; None where it is a bug."""
    return ModelError(messages) if name in _CHECKS_OF_THE_MODEL else None


def assignment_passes(options: ResolvedOptions) -> list[str]:
    """Dense graph to one in which the linears that --qformat quantizes are marked."""
    return [*_batch_passes(options), *_quantization_passes(options, ())]


def _batch_passes(options: ResolvedOptions) -> list[str]:
    return ["llm-pipeline-raise", f"llm-pipeline-batch{{block-size={options.block_size}}}"]


def kernel_passes(options: ResolvedOptions, stored: Sequence[Assignment] = ()) -> list[str]:
    """Dense graph to outlined kernels. The named pipelines are flat lists in passes/Pipelines.cpp.

    stored: the quantization that the checkpoint brings along.
    """
    precision = f"weights={options.weight_dtype} activations={options.activation_dtype} kv={options.kv_cache_dtype}"
    return [
        *_batch_passes(options),
        *_quantization_passes(options, stored),
        f"llm-pipeline-optimize{{{precision} glu-block={options.target.glu_block}}}",
        *(["llm-append-sampler"] if options.target.samples_on_device else []),
        "llm-form-kernels",
        "llm-outline-kernels",
    ]


def _quantization_passes(options: ResolvedOptions, stored: Sequence[Assignment]) -> list[str]:
    """The decision, by names as the checkpoint has them; llm-pipeline-optimize carries it out."""
    if options.quantization is not None:
        stored = [Assignment(options.quantization, options.exclude, options.quantize_lm_head)]
    return [_assignment_pass(assignment) for assignment in stored]


def _assignment_pass(assignment: Assignment) -> str:
    format = assignment.format
    settings = [f"weights={format.weights}", f"group={format.group}"]
    settings += [f"inputs={format.inputs}"] if format.inputs else []
    settings += [f"exclude={','.join(assignment.exclude)}"] if assignment.exclude else []
    settings += ["zeros=true"] if format.zeros else []
    settings += ["lm-head=true"] if assignment.lm_head else []
    return f"llm-assign-quantization{{{' '.join(settings)}}}"


def plan_passes(limits: dict[str, int]) -> list[str]:
    """Outlined kernels to arena offsets, proved by a pass that shares no decision with the planner."""
    sizes = f"max-num-tokens={limits['max_num_tokens']} max-batch-size={limits['max_batch_size']}"
    return [f"llm-plan-memory{{{sizes}}}", "llm-check-memory-plan"]


def export_plan(module: ir.Module) -> dict[str, Any]:
    """The abstract plan (docs/plan-export.md) of a planned module, as a JSON value."""
    from mlir import ir
    from mlir.passmanager import PassManager

    with module.context:
        PassManager.parse("builtin.module(llm-export-plan)").run(module.operation)
        attributes = module.operation.attributes
        text = ir.StringAttr(attributes["llm.plan"]).value
        del attributes["llm.plan"]
    return json.loads(text)
