"""What a step has to move and to compute, by kernel, read off the plan.

Bytes: every operand once, as far as a launch needs it: whole weights (of an embedding table its
tokens' rows), the rows of the step, and of the KV cache what the sequences hold. Scratch memory is
not counted: it is how a kernel works, not what it is for. Operations: two for each multiply-add of
a linear, and of the products of attention under the causal mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

Json = dict[str, Any]

_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "i64": 8, "u64": 8, "i8": 1, "u8": 1, "f8e4m3": 1, "f8e5m2": 1}


@dataclass(frozen=True)
class StepShape:
    """`sequences` sequences compute `tokens` tokens each and are `context` tokens long afterwards."""

    sequences: int
    tokens: int
    context: int

    @property
    def sizes(self) -> dict[str, int]:
        return {"T": self.sequences * self.tokens, "S": self.sequences, "R": self.sequences}


@dataclass
class KernelCost:
    anchor: str
    bytes: float = 0
    flops: float = 0


class StepCost:
    def __init__(self, manifest: Json, plan: Json) -> None:
        self._plan = plan
        self._weights = {w["name"]: (w["shape"], w["dtype"]) for w in manifest["weights"]["tensors"]}

    def of(self, shape: StepShape) -> dict[str, KernelCost]:
        """By name of the plan's kernel, over all its launches in a step of this shape."""
        tokens = shape.sizes["T"]
        launches = next(r["launches"] for r in self._plan["ranges"] if tokens <= r["max_tokens"])
        costs: dict[str, KernelCost] = {}
        for launch in launches:
            kernel = self._plan["kernels"][launch["kernel"]]
            cost = costs.setdefault(kernel["name"], KernelCost(kernel["anchor"]))
            self._add(cost, launch, shape)
        return costs

    def _add(self, cost: KernelCost, launch: Json, shape: StepShape) -> None:
        bases = [arg["tensor_map"]["base"] if "tensor_map" in arg else arg for arg in launch["args"]]
        buffers = [self._buffer(base["buffer"]) for base in bases if "buffer" in base]
        # What gathers rows reads only those.
        rows = shape.sizes["R" if any(b["shape"][:1] == ["R"] for b in buffers) else "T"]
        # A workspace has no rows.
        cost.bytes += sum(
            rows * _row_bytes(b["shape"], b["dtype"]) for b in buffers if b["shape"][:1] in (["T"], ["R"])
        )
        for base in bases:
            if "weight" in base:
                extents, dtype = self._weights[base["weight"]]
                if cost.anchor == "embedding":
                    cost.bytes += rows * _row_bytes(extents, dtype)
                else:
                    cost.bytes += prod(extents) * _BYTES[dtype]
                if cost.anchor == "linear" and len(extents) == 2:
                    cost.flops += 2 * rows * prod(extents)
            elif "kv" in base:
                self._add_kv(cost, base, shape, buffers)

    def _add_kv(self, cost: KernelCost, base: Json, shape: StepShape, buffers: list[Json]) -> None:
        layer = self._plan["kv_cache"]["layers"][base["layer"]]
        dim = layer["head_dim" if base["kv"] == "k" else "v_head_dim"]
        token_bytes = layer["heads"] * dim * _BYTES[layer["dtype"]]
        if cost.anchor != "attention":
            cost.bytes += shape.sizes["T"] * token_bytes
            return
        window = layer.get("window") or shape.context
        first = shape.context - shape.tokens
        cost.bytes += shape.sequences * min(shape.context, window + shape.tokens - 1) * token_bytes
        heads = prod(buffers[0]["shape"][1:]) // layer["head_dim"]
        seen = sum(min(position + 1, window) for position in range(first, shape.context))
        cost.flops += 2 * shape.sequences * heads * dim * seen

    def _buffer(self, index: int) -> Json:
        buffer: Json = self._plan["arena"]["buffers"][index]
        return buffer


def _row_bytes(shape: list[Any], dtype: str) -> int:
    return prod(shape[1:]) * _BYTES[dtype]
