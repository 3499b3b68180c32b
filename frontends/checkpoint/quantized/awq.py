"""AutoAWQ checkpoints of version "gemm".

qweight [K, N / 8]  int32, 4-bit codes of eight consecutive out features in a word, in the order below
qzeros  [G, N / 8]  int32, zero points in the same way
scales  [G, N]      f16
"""

from __future__ import annotations

from typing import Any

from llmc.frontends.checkpoint.quantized.description import FLOATS, LayerDescription, Packing, Part, StoredFormat
from llmc.frontends.checkpoint.quantized.method import Method, Tensors, group_of, integer

#: Columns 0, 2, 4, 6, 1, 3, 5, 7 lie in a word from its lowest bits on.
_PACKING = Packing(4, places=(0, 4, 1, 5, 2, 6, 3, 7))


class Awq(Method):
    name = "AutoAWQ"

    def __init__(self, fields: dict[str, Any]):
        if (bits := integer(self, fields, "bits", fields.get("w_bit"))) != 4:
            raise self.refuse("bits", bits, "4")
        version = str(fields.get("version") or fields.get("format") or "gemm").lower()
        if version != "gemm":
            raise self.refuse("version", version, "gemm")
        self.group_size = integer(self, fields, "group_size", fields.get("q_group_size", 128))
        self.zero_point = bool(fields.get("zero_point", True))

    def modules(self, tensors: Tensors) -> list[str]:
        return tensors.modules("qweight")

    def describe(self, module: str, tensors: Tensors) -> LayerDescription:
        inputs, words = tensors.shape(module, "qweight", 2)
        outputs = words * _PACKING.per_word
        group = group_of(self, self.group_size, module, inputs)
        groups = inputs // group if group else 1
        zeros = Part("qzeros", ("i32",), (groups, words), out_dim=1, packing=_PACKING, packed_dim=1)
        return LayerDescription(
            module,
            (outputs, inputs),
            StoredFormat("i4", group, zeros=self.zero_point),
            codes=Part("qweight", ("i32",), (inputs, words), out_dim=1, packing=_PACKING, packed_dim=1),
            scales=Part("scales", FLOATS, (groups, outputs), out_dim=1),
            zeros=zeros if self.zero_point or tensors.has(module, "qzeros") else None,
        )
