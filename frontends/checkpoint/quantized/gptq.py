"""GPTQ checkpoints, as AutoGPTQ and GPTQModel write them.

qweight [K * bits / 32, N]  int32, codes of consecutive in features in a word
qzeros  [G, N * bits / 32]  int32, zero points of consecutive out features in a word, minus one (format "gptq") or
                            as they are ("gptq_v2")
scales  [G, N]              f16
g_idx   [K]                 int32, the group of each in feature
"""

from __future__ import annotations

from typing import Any

from llmc.frontends.checkpoint.quantized.description import FLOATS, LayerDescription, Packing, Part, StoredFormat
from llmc.frontends.checkpoint.quantized.method import Method, Tensors, group_of, integer

_CODES = {4: "i4", 8: "i8"}


class Gptq(Method):
    name = "GPTQ"

    def __init__(self, fields: dict[str, Any]):
        self.bits = integer(self, fields, "bits")
        if self.bits not in _CODES:
            raise self.refuse("bits", self.bits, "4 or 8")
        self.group_size = integer(self, fields, "group_size", 128)
        self.symmetric = bool(fields.get("sym", True))
        self.ordered = bool(fields.get("desc_act", False))
        # GPTQModel writes `checkpoint_format`, transformers `format`; AutoGPTQ neither.
        self.version = fields.get("checkpoint_format") or fields.get("format") or "gptq"
        if self.version not in ("gptq", "gptq_v2"):
            raise self.refuse("checkpoint_format", self.version, "gptq or gptq_v2")
        if fields.get("dynamic"):
            raise self.refuse("dynamic", fields["dynamic"], "one format for all layers")

    def modules(self, tensors: Tensors) -> list[str]:
        return tensors.modules("qweight")

    def describe(self, module: str, tensors: Tensors) -> LayerDescription:
        packing = Packing(self.bits)
        words, columns = tensors.shape(module, "qweight", 2)
        inputs, outputs = words * packing.per_word, columns
        group = group_of(self, self.group_size, module, inputs)
        groups = inputs // group if group else 1
        # Of some versions symmetric files lack the minus one, whatever their format says.
        old = self.version == "gptq"
        zeros = Part(
            "qzeros", ("i32",), (groups, packing.words(outputs)), out_dim=1, packing=packing, packed_dim=1,
            added=1 if old else 0, wraps=old, also_none=(1,) if old else (),
        )  # fmt: skip
        return LayerDescription(
            module,
            (outputs, inputs),
            StoredFormat(_CODES[self.bits], group, zeros=not self.symmetric, ordered=self.ordered and groups > 1),
            codes=Part("qweight", ("i32",), (words, outputs), out_dim=1, packing=packing, packed_dim=0),
            scales=Part("scales", FLOATS, (groups, outputs), out_dim=1),
            zeros=zeros,
            order=Part("g_idx", ("i32",), (inputs,)) if self.ordered or tensors.has(module, "g_idx") else None,
        )
