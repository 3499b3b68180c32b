"""plan.json: the abstract plan of the passes joined with the kernel variants of codegen.

The abstract plan (docs/plan-export.md) lists launches of `llm.kernel`s over buffers. Codegen returns
for each kernel variants, each for a range of token counts and with launches of machine code whose
arguments are relative to the kernel. This module cuts the token counts where any variant changes
and binds the arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from llmc.compiler.dtypes import BY_NAME
from llmc.compiler.errors import InternalError

if TYPE_CHECKING:
    from llmc.codegen.kernel import KernelVariant, Launch

Json = dict[str, Any]

PLAN_VERSION = 1
_BUFFER_ALIGNMENT = 256


def build_plan(
    abstract: Json,
    variants: dict[str, Sequence[KernelVariant]],
    code: Sequence[Json],
    max_num_tokens: int,
    constants: Json,
) -> Json:
    """The plan as a JSON value.

    abstract:  what `llm-export-plan` wrote.
    variants:  of each `llm.kernel`, by symbol; together they cover 1..max_num_tokens.
    code:      the plan's `code` list; `Launch.code` of the variants indexes it.
    constants: the plan's `constants`.
    """
    binder = _Binder(abstract)
    ranges = [
        {
            "min_tokens": begin,
            "max_tokens": end,
            "launches": [
                launch
                for step in abstract["launches"]
                for launch in binder.bind(step, _variant_for(variants, step["kernel"], begin, end))
            ],
        }
        for begin, end in token_ranges(variants.values(), max_num_tokens)
    ]
    arena = abstract["arena"]
    return {
        "plan_version": PLAN_VERSION,
        "constants": constants,
        "kv_cache": abstract["kv_cache"],
        "arena": {
            "bytes": arena["bytes"],
            "lower_bound": arena["lower_bound"],
            "peak": arena["peak"],
            "buffers": binder.buffers,
        },
        "inputs": abstract["inputs"],
        "outputs": abstract["outputs"],
        "code": list(code),
        "kernels": binder.kernels,
        "ranges": ranges,
    }


def token_ranges(variant_lists: Iterable[Sequence[KernelVariant]], max_num_tokens: int) -> list[tuple[int, int]]:
    """The coarsest ordered ranges that cover 1..max_num_tokens and cross no variant's border."""
    starts = {1}
    for variants in variant_lists:
        for variant in variants:
            starts |= {variant.min_tokens, variant.max_tokens + 1}
    inside = sorted(start for start in starts if 1 <= start <= max_num_tokens)
    return [(begin, following - 1) for begin, following in zip(inside, [*inside[1:], max_num_tokens + 1], strict=True)]


def _variant_for(variants: dict[str, Sequence[KernelVariant]], kernel: str, begin: int, end: int) -> KernelVariant:
    for variant in variants.get(kernel, ()):
        if variant.min_tokens <= begin and end <= variant.max_tokens:
            return variant
    raise InternalError(f"kernel {kernel} has no variant for {begin} to {end} tokens")


class _Binder:
    """Turns relative arguments into those of the plan; collects kernels and workspace buffers."""

    def __init__(self, abstract: Json):
        self.buffers: list[Json] = [dict(buffer) for buffer in abstract["arena"]["buffers"]]
        self.kernels: list[Json] = []
        self._arena_bytes = abstract["arena"]["bytes"]
        self._kernel_numbers: dict[tuple[int, str], int] = {}
        self._workspaces: dict[tuple[int, int], int] = {}

    def bind(self, step: Json, variant: KernelVariant) -> list[Json]:
        """The plan's launches of one launch of the abstract plan."""
        return [
            {
                "kernel": self._kernel(launch, step),
                "grid": [_jsonable(size) for size in launch.grid],
                "args": [self._argument(argument, step) for argument in launch.args],
            }
            for launch in variant.launches
        ]

    def _kernel(self, launch: Launch, step: Json) -> int:
        key = (launch.code, launch.entry)
        if key not in self._kernel_numbers:
            self._kernel_numbers[key] = len(self.kernels)
            self.kernels.append(
                {
                    "name": launch.entry,
                    "code": launch.code,
                    "entry": launch.entry,
                    "block": list(launch.block),
                    "cluster": list(launch.cluster),
                    "shared_bytes": launch.shared_bytes,
                    "pdl": launch.pdl,
                    "registers": launch.registers,
                    "anchor": step.get("anchor"),
                }
            )
        return self._kernel_numbers[key]

    def _argument(self, argument: Json, step: Json) -> Json:
        if "operand" in argument:
            return _operand(step["operands"][argument["operand"]], argument.get("part"))
        if "result" in argument:
            return {"buffer": step["results"][argument["result"]]}
        if "workspace" in argument:
            return {"buffer": self._workspace(step, argument["workspace"])}
        if "tensor_map" in argument:
            fields = argument["tensor_map"]
            return {"tensor_map": {**fields, "base": self._argument(fields["base"], step)}}
        return _jsonable(argument)

    def _workspace(self, step: Json, offset: int) -> int:
        """A buffer for the rest of the step's workspace from `offset` on."""
        workspace = step["workspace"]
        begin = workspace["offset"] + offset
        size = workspace["bytes"] - offset
        if begin % _BUFFER_ALIGNMENT:
            raise InternalError(f"kernel {step['kernel']}: workspace offset {offset} is not aligned")
        key = (begin, size)
        if key not in self._workspaces:
            self._workspaces[key] = len(self.buffers)
            self.buffers.append(
                {
                    "name": f"workspace_{len(self._workspaces) - 1}",
                    "dtype": "u8",
                    "shape": [size],
                    "offset": begin,
                    "bytes": size,
                    "live": list(workspace["live"]),
                }
            )
        buffer = self.buffers[self._workspaces[key]]
        first, last = buffer["live"]
        buffer["live"] = [min(first, workspace["live"][0]), max(last, workspace["live"][1])]
        return self._workspaces[key]


def _operand(binding: Json, part: str | None) -> Json:
    """A kernel operand's binding: a buffer, weight or input as is, a part of a handle."""
    if part is None:
        return binding
    if "kv" in binding:
        return {"kv": part, "layer": binding["kv"]}
    return {"input": part}


def _jsonable(value: Any) -> Any:
    """Expressions come as nested tuples or lists."""
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    return value


def referenced_weights(plan: Json) -> set[str]:
    """Names of the weights that some launch reads."""
    return {
        name
        for entry in plan["ranges"]
        for launch in entry["launches"]
        for argument in launch["args"]
        if (name := _base(argument).get("weight")) is not None
    }


def _base(argument: Json) -> Json:
    return argument["tensor_map"]["base"] if "tensor_map" in argument else argument


def buffer_bytes(buffer: Json, sizes: dict[str, int]) -> int:
    """Bytes of a buffer at the given runtime sizes."""
    total = BY_NAME[buffer["dtype"]].bytes
    for extent in buffer["shape"]:
        total *= evaluate(extent, sizes)
    return total


def evaluate(expression: Any, sizes: dict[str, int]) -> int:
    """Value of a size expression of the engine format."""
    if isinstance(expression, int):
        return expression
    if isinstance(expression, str):
        return sizes[expression]
    operator, left, right = expression
    a, b = evaluate(left, sizes), evaluate(right, sizes)
    return {
        "add": a + b,
        "sub": a - b,
        "mul": a * b,
        "ceildiv": -(-a // b) if b else 0,
        "min": min(a, b),
        "max": max(a, b),
    }[operator]
