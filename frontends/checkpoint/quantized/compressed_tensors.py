"""compressed-tensors checkpoints (llm-compressor and others), formats "pack-quantized", "int-quantized",
"float-quantized" and "naive-quantized".

    weight             [N, K]              int8 or f8e4m3, or
    weight_packed      [N, K * bits / 32]  int32, unsigned codes of consecutive in features in a word
    weight_shape       [2]                 N and K of packed codes
    weight_scale       [N, G], [1] or [N / b, K / b]
    weight_zero_point  [N, G], or packed along N; of asymmetric formats
    weight_g_idx       [K]                 the group of each in feature
    input_scale        [1]                 of static inputs
"""

from __future__ import annotations

from typing import Any

import numpy as np

from llmc.frontends.checkpoint.quantized.description import (
    FLOATS,
    InputFormat,
    LayerDescription,
    Packing,
    Part,
    StoredFormat,
)
from llmc.frontends.checkpoint.quantized.float8 import block_scales, coded_modules, is_block, number
from llmc.frontends.checkpoint.quantized.method import Method, Tensors, group_of, integer, matches
from llmc.frontends.errors import FrontendError

_FORMATS = ("pack-quantized", "int-quantized", "float-quantized", "naive-quantized", "mixed-precision")
_CODES = {("int", 4): "i4", ("int", 8): "i8", ("float", 8): "f8E4M3FN"}
_STORED = {"i8": ("i8",), "f8E4M3FN": ("f8e4m3",)}
_STRATEGIES = ("tensor", "channel", "group", "block")


class CompressedTensors(Method):
    name = "compressed-tensors"

    def __init__(self, fields: dict[str, Any]):
        self._format(fields.get("format"))
        if (status := fields.get("quantization_status", "compressed")) != "compressed":
            raise self.refuse("quantization_status", status, "compressed")
        for name in ("sparsity_config", "transform_config"):
            value = fields.get(name)
            if value and value.get("format", value) != "dense":
                raise self.refuse(name, value, "none")
        groups = fields.get("config_groups")
        if not isinstance(groups, dict) or not groups:
            raise self.refuse("config_groups", groups, "one group or more")
        self._schemes = [_Scheme(self, name, group) for name, group in groups.items()]

    def _format(self, format: Any) -> None:
        if format not in _FORMATS:
            raise self.refuse("format", format, ", ".join(_FORMATS))

    def modules(self, tensors: Tensors) -> list[str]:
        return sorted({*tensors.modules("weight_packed"), *coded_modules(tensors, "f8e4m3", "i8")})

    def describe(self, module: str, tensors: Tensors) -> LayerDescription:
        return self._scheme_of(module).describe(module, tensors)

    def _scheme_of(self, module: str) -> _Scheme:
        """A target that is a name wins over an expression, an expression over a class of modules."""

        def rank(target: str) -> int:
            return 1 if target.startswith("re:") else 0

        named = [(rank(t), scheme) for scheme in self._schemes for t in scheme.targets if matches(t, module)]
        if named:
            return min(named, key=lambda pair: pair[0])[1]
        of_class = [scheme for scheme in self._schemes if "Linear" in scheme.targets]
        if not of_class:
            raise FrontendError(
                f"the layer '{module}' is quantized, but no config group of its quantization configuration "
                f"({self.name}) targets it; fetch config.json again"
            )
        return of_class[0]


class _Scheme:
    """One config group."""

    def __init__(self, method: CompressedTensors, name: str, group: dict[str, Any]):
        self._method = method
        self.targets = [str(target) for target in group.get("targets") or ()]
        if format := group.get("format"):
            method._format(format)
        weights = group.get("weights")
        if not isinstance(weights, dict):
            raise method.refuse(f"{name}.weights", weights, "quantized weights")
        if group.get("output_activations"):
            raise method.refuse(f"{name}.output_activations", group["output_activations"], "none")
        kind = (weights.get("type", "int"), integer(method, weights, "num_bits", 8))
        if kind not in _CODES:
            raise method.refuse(f"{name}.weights", f"{kind[0]} of {kind[1]} bits", "int of 4 or 8 bits, float of 8")
        self.codes = _CODES[kind]
        self.symmetric = bool(weights.get("symmetric", True))
        self.group_size = weights.get("group_size") or -1
        self.strategy = weights.get("strategy") or ("group" if self.group_size > 0 else "tensor")
        if self.strategy not in _STRATEGIES:
            raise method.refuse(f"{name}.weights.strategy", self.strategy, ", ".join(_STRATEGIES))
        self.block: list[int] = weights.get("block_structure") or []
        if self.strategy == "block" and not is_block(self.block):
            raise method.refuse(f"{name}.weights.block_structure", self.block, "two positive numbers")
        self.ordered = weights.get("actorder") in ("group", "dynamic", True)
        self.inputs = self._inputs(name, group.get("input_activations"))

    def _inputs(self, name: str, fields: dict[str, Any] | None) -> InputFormat | None:
        if not fields:
            return None
        method = self._method
        kind = (fields.get("type", "int"), integer(method, fields, "num_bits", 8))
        if _CODES.get(kind) not in ("i8", "f8E4M3FN"):
            raise method.refuse(f"{name}.input_activations", f"{kind[0]} of {kind[1]} bits", "8 bits")
        if not fields.get("symmetric", True):
            raise method.refuse(f"{name}.input_activations.symmetric", False, "true")
        if not fields.get("dynamic", False):
            return InputFormat(_CODES[kind], "static")
        strategy = fields.get("strategy", "tensor")
        if strategy not in ("token", "tensor", "group"):
            raise method.refuse(f"{name}.input_activations.strategy", strategy, "token, tensor or group")
        return InputFormat(_CODES[kind], strategy)

    def describe(self, module: str, tensors: Tensors) -> LayerDescription:
        packed = tensors.has(module, "weight_packed")
        shape = self._shape(module, tensors, packed)
        outputs, inputs = shape
        packing = Packing(4 if self.codes == "i4" else 8) if packed else None
        if packing:
            codes = Part("weight_packed", ("i32",), (outputs, packing.words(inputs)), packing=packing, packed_dim=1)
        else:
            # 4-bit codes that are not packed have a byte each.
            codes = Part("weight", _STORED.get(self.codes, ("i8",)), shape)
        group = group_of(self._method, self.group_size, module, inputs) if self.strategy == "group" else 0
        groups = inputs // group if group else 1
        if self.strategy == "block":
            group, scales = self.block[1], block_scales("weight_scale", shape, self.block)
        elif self.strategy == "tensor":
            scales = number("weight_scale")
        else:
            scales = Part("weight_scale", FLOATS, (outputs, groups), also_shapes=((outputs,),) if groups == 1 else ())
        has_order = self.ordered or tensors.has(module, "weight_g_idx")
        return LayerDescription(
            module,
            shape,
            StoredFormat(
                self.codes, group, zeros=not self.symmetric, ordered=self.ordered,
                blocks=self.strategy == "block", inputs=self.inputs,
            ),
            codes=codes,
            scales=scales,
            zeros=self._zeros(module, tensors, outputs, groups, packing),
            order=Part("weight_g_idx", ("i32", "i64"), (inputs,)) if has_order else None,
            input_scale=number("input_scale") if self.inputs and self.inputs.scale == "static" else None,
            also=("weight_shape",) if packed else (),
        )  # fmt: skip

    def _shape(self, module: str, tensors: Tensors, packed: bool) -> tuple[int, int]:
        if not packed:
            outputs, inputs = tensors.shape(module, "weight", 2)
            return outputs, inputs
        tensors.shape(module, "weight_shape", 1)
        found = np.asarray(tensors.files.read(f"{module}.weight_shape")).reshape(-1).tolist()
        if len(found) != 2 or min(found) < 1:
            raise FrontendError(f"'{module}.weight_shape' says {found}: expected out and in features")
        return int(found[0]), int(found[1])

    def _zeros(self, module: str, tensors: Tensors, outputs: int, groups: int, packing: Packing | None) -> Part | None:
        if self.symmetric and not tensors.has(module, "weight_zero_point"):
            return None
        suffix, dtypes = "weight_zero_point", ("i8", "i32", "i64", "f8e4m3", *FLOATS)
        if self.strategy == "tensor":
            return Part(suffix, dtypes, (), out_dim=None, also_shapes=((1,), (1, 1)))
        if packing and not self.symmetric:
            return Part(suffix, ("i32",), (packing.words(outputs), groups), packing=packing, packed_dim=0)
        return Part(suffix, dtypes, (outputs, groups), also_shapes=((outputs,),) if groups == 1 else ())
