"""plan.json: the abstract plan of the passes joined with the kernel variants of codegen.

The abstract plan (docs/plan-export.md) lists launches of `llm.kernel`s over buffers. Codegen returns
for each kernel variants, each for a range of token counts and with launches of machine code whose
arguments are relative to the kernel. This module cuts the token counts where any variant changes
and binds the arguments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llmc.compiler.dtypes import BY_NAME
from llmc.errors import InternalError

if TYPE_CHECKING:
    from llmc.codegen.kernel import CodeObject, CompiledKernel, Entry, Variant

Json = dict[str, Any]

PLAN_VERSION = 1
_BUFFER_ALIGNMENT = 256


def build_plan(
    abstract: Json, kernels: Mapping[str, CompiledKernel], max_num_tokens: int, max_blocks_per_seq: int
) -> tuple[Json, dict[str, bytes]]:
    """The plan as a JSON value, and the code objects that it names: path in the engine -> bytes.

    abstract:  what `llm-export-plan` wrote.
    kernels:   by symbol of the `llm.kernel`; their variants cover 1..max_num_tokens.
    """
    used = {step["kernel"] for step in abstract["launches"]}
    if absent := used - kernels.keys():
        raise InternalError(f"codegen returned no kernel {', '.join(sorted(absent))}")
    binder = _Binder(abstract, max((kernels[name].zeroed_bytes for name in used), default=0))
    ranges = [
        {
            "min_tokens": begin,
            "max_tokens": end,
            "launches": [
                launch
                for step in abstract["launches"]
                for launch in binder.bind(step, kernels[step["kernel"]], begin, end)
            ],
        }
        for begin, end in token_ranges((kernels[name].variants for name in sorted(used)), max_num_tokens)
    ]
    arena = abstract["arena"]
    plan = {
        "plan_version": PLAN_VERSION,
        "constants": {**abstract["constants"], "max_blocks_per_seq": max_blocks_per_seq},
        "kv_cache": abstract["kv_cache"],
        "arena": {
            "bytes": binder.arena_bytes,
            "lower_bound": arena["lower_bound"],
            "peak": arena["peak"],
            "buffers": binder.buffers,
        },
        "inputs": abstract["inputs"],
        "outputs": abstract["outputs"],
        "code": binder.code,
        "kernels": binder.kernels,
        "ranges": ranges,
    }
    return plan, binder.code_bytes


def token_ranges(variant_lists: Iterable[Sequence[Variant]], max_num_tokens: int) -> list[tuple[int, int]]:
    """The coarsest ordered ranges that cover 1..max_num_tokens and cross no variant's border."""
    starts = {1}
    for variants in variant_lists:
        for variant in variants:
            starts.add(variant.min_tokens)
            if variant.max_tokens is not None:
                starts.add(variant.max_tokens + 1)
    inside = sorted(start for start in starts if 1 <= start <= max_num_tokens)
    following = [*inside[1:], max_num_tokens + 1]
    return [(begin, after - 1) for begin, after in zip(inside, following, strict=True)]


def _variant_for(kernel: CompiledKernel, begin: int, end: int) -> Variant:
    for variant in kernel.variants:
        if variant.min_tokens <= begin and (variant.max_tokens is None or end <= variant.max_tokens):
            return variant
    raise InternalError(f"kernel {kernel.name} has no variant for {begin} to {end} tokens")


class _Binder:
    """Turns relative arguments into those of the plan; collects kernels and workspace buffers."""

    def __init__(self, abstract: Json, zeroed_bytes: int):
        self.buffers: list[Json] = [dict(buffer) for buffer in abstract["arena"]["buffers"]]
        self.kernels: list[Json] = []
        self.code: list[Json] = []
        self.code_bytes: dict[str, bytes] = {}
        self._kernel_numbers: dict[tuple[int, str], int] = {}
        self._workspaces: dict[tuple[int, int], int] = {}
        constants = abstract["constants"]
        self.arena_bytes: int = abstract["arena"]["bytes"]
        self._zeroed: int | None = None
        if zeroed_bytes:
            self._zeroed = self._add_zeroed(zeroed_bytes, len(abstract["launches"]) - 1)
        self._limits = {"T": constants["max_num_tokens"], "R": constants["max_batch_size"]}

    def _add_zeroed(self, size: int, last: int) -> int:
        """A buffer behind all others that lives for the whole step, so that nothing else lies there."""
        begin = -(-self.arena_bytes // _BUFFER_ALIGNMENT) * _BUFFER_ALIGNMENT
        self.arena_bytes = begin + size
        shape = {"dtype": "u8", "shape": [size], "offset": begin, "bytes": size}
        self.buffers.append({"name": "zeroed", **shape, "live": [0, last]})
        return len(self.buffers) - 1

    def bind(self, step: Json, kernel: CompiledKernel, begin: int, end: int) -> list[Json]:
        """The plan's launches of one launch of the abstract plan."""
        sizes = self._row_sizes(step)
        if sizes["rows"] == "R":
            # Logit rows are few however many tokens there are: a variant for that many rows.
            begin = end = min(end, sizes["max_rows"])
        return [
            {
                "kernel": self._kernel(launch.entry, kernel.anchor),
                "grid": [_sized(size, sizes) for size in launch.grid],
                "args": [self._argument(argument, step, sizes) for argument in launch.arguments],
            }
            for launch in _variant_for(kernel, begin, end).launches
        ]

    def _row_sizes(self, step: Json) -> Json:
        """What `rows` and `max_rows` mean in this launch: the leading size of its first result."""
        rows = self.buffers[step["results"][0]]["shape"][0] if step["results"] else "T"
        return {"rows": rows, "max_rows": evaluate(rows, self._limits)}

    def _kernel(self, entry: Entry, anchor: str) -> int:
        code = self._code(entry.code)
        key = (code, entry.name)
        if key not in self._kernel_numbers:
            self._kernel_numbers[key] = len(self.kernels)
            self.kernels.append({**entry.description(), "code": code, "anchor": anchor})
        return self._kernel_numbers[key]

    def _code(self, code: CodeObject) -> int:
        path = _code_path(code)
        if path not in self.code_bytes:
            self.code_bytes[path] = code.data
            self.code.append({"path": path, "kind": code.kind})
        return next(number for number, row in enumerate(self.code) if row["path"] == path)

    def _argument(self, argument: Json, step: Json, sizes: Json) -> Json:
        """The argument bound to the step, with the sizes of the launch in the place of their names."""
        if "operand" in argument:
            return _operand(step["operands"][argument["operand"]], argument.get("part"))
        if "result" in argument:
            return {"buffer": step["results"][argument["result"]]}
        if "workspace" in argument:
            return {"buffer": self._workspace(step, argument["workspace"])}
        if "zeroed" in argument:
            return {"buffer": self._zeroed}
        if "tensor_map" in argument:
            fields = argument["tensor_map"]
            bound = {name: [_sized(size, sizes) for size in fields[name]] for name in ("shape", "strides")}
            return {"tensor_map": {**fields, **bound, "base": self._argument(fields["base"], step, sizes)}}
        return {kind: _sized(value, sizes) if kind in ("i32", "i64") else value for kind, value in argument.items()}

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


def _code_path(code: CodeObject) -> str:
    if code.kind == "host":
        return "kernels/host.so"
    return f"kernels/{hashlib.sha256(code.data).hexdigest()[:32]}.{code.kind}"


def _operand(binding: Json, part: str | None) -> Json:
    """A kernel operand's binding: a buffer, weight or input as is, a part of a handle."""
    if part is None:
        return binding
    if "kv" in binding:
        return {"kv": part, "layer": binding["kv"]}
    return {"input": part}


def _sized(expression: Any, sizes: Json) -> Any:
    """A size expression in plain JSON, with the sizes of the launch in the place of their names."""
    if isinstance(expression, (list, tuple)):
        operator, *operands = expression
        return [operator, *(_sized(operand, sizes) for operand in operands)]
    return sizes.get(expression, expression) if isinstance(expression, str) else expression


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
    if operator == "ceildiv":
        if b <= 0:
            raise InternalError(f"size expression {expression} divides by {b}")
        return -(-a // b)
    return {"add": a + b, "sub": a - b, "mul": a * b, "min": min(a, b), "max": max(a, b)}[operator]
