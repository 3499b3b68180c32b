"""The facts of a `!llm.kv` operand, and the TMA map of its pages."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from ..kernel import Argument
from .body import bytes_of


@dataclass(frozen=True)
class KvLayer:
    """One layer of the cache: keys [NB, heads, block, head_dim], values with v_head_dim."""

    heads: int
    head_dim: int
    v_head_dim: int
    block: int
    element: ir.Type

    @staticmethod
    def of(value: ir.Value) -> KvLayer:
        # The type's parameters are not visible through MLIR's C API; its text is stable.
        text = str(value.type).split("<", 1)[1].rstrip(">")
        fields = dict(field.strip().split(" = ") for field in text.split(","))
        sizes = {name: int(fields[name]) for name in ("heads", "head_dim", "v_head_dim", "block")}
        return KvLayer(**sizes, element=ir.Type.parse(fields["element"]))

    def tensor_map(self, base: Argument, slab: int) -> Argument:
        """Keys or values, in boxes of one page of one head by `slab` columns."""
        row = self.head_dim * bytes_of(self.element)
        return {
            "tensor_map": {
                "base": base,
                "dtype": str(self.element),
                "shape": [self.head_dim, self.block, self.heads, "NB"],
                "strides": [row, row * self.block, row * self.block * self.heads],
                "box": [slab, self.block, 1, 1],
                "swizzle": 128,
                "l2_promotion": 256,
                "fill": "zero",
            }
        }
