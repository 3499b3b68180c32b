"""Checkpoints of 8-bit floats with one scale a matrix or a scale a block, under the names that three tools write.

weight            [N, K]  f8e4m3
weight_scale      []      one number for the matrix (AutoFP8, ModelOpt), or
weight_scale_inv  [N / b, K / b]  a number a block of b x b, which multiplies in spite of its name (DeepSeek, Qwen)
input_scale       []      of static inputs
"""

from __future__ import annotations

from typing import Any

from llmc.frontends.checkpoint.quantized.description import (
    FLOATS,
    InputFormat,
    LayerDescription,
    Part,
    StoredFormat,
)
from llmc.frontends.checkpoint.quantized.method import Method, Tensors

CODES = "f8E4M3FN"


class Float8(Method):
    """quant_method "fp8": with `weight_block_size` DeepSeek's, without it AutoFP8's."""

    name = "fp8"

    def __init__(self, fields: dict[str, Any]):
        if (kind := fields.get("fmt", "e4m3")) not in ("e4m3", "float8_e4m3fn"):
            raise self.refuse("fmt", kind, "e4m3")
        self.scheme = fields.get("activation_scheme", "dynamic")
        if self.scheme not in ("dynamic", "static"):
            raise self.refuse("activation_scheme", self.scheme, "dynamic or static")
        self.block = fields.get("weight_block_size")
        if self.block is not None and not is_block(self.block):
            raise self.refuse("weight_block_size", self.block, "two positive numbers")
        if self.block is not None and self.scheme == "static":
            raise self.refuse("activation_scheme", self.scheme, "dynamic, where weights have blocks")

    def modules(self, tensors: Tensors) -> list[str]:
        return coded_modules(tensors)

    def describe(self, module: str, tensors: Tensors) -> LayerDescription:
        if self.block is None:
            return per_tensor(module, tensors, "static" if self.scheme == "static" else "tensor")
        outputs, inputs = tensors.shape(module, "weight", 2)
        return LayerDescription(
            module,
            (outputs, inputs),
            StoredFormat(CODES, self.block[1], blocks=True, inputs=InputFormat(CODES, "group")),
            codes=Part("weight", ("f8e4m3",), (outputs, inputs)),
            scales=block_scales("weight_scale_inv", (outputs, inputs), self.block),
        )


class ModelOpt(Method):
    """What NVIDIA's ModelOpt writes: quant_algo FP8 of hf_quant_config.json or of the configuration."""

    name = "ModelOpt"

    def __init__(self, fields: dict[str, Any]):
        if (algorithm := fields.get("quant_algo")) != "FP8":
            raise self.refuse("quant_algo", algorithm, "FP8")

    def modules(self, tensors: Tensors) -> list[str]:
        return coded_modules(tensors)

    def describe(self, module: str, tensors: Tensors) -> LayerDescription:
        return per_tensor(module, tensors, "static")


def coded_modules(tensors: Tensors, *dtypes: str) -> list[str]:
    """Modules whose `weight` is a matrix of codes."""
    kinds = dtypes or ("f8e4m3",)
    return [module for module in tensors.modules("weight") if tensors.dtype(module, "weight") in kinds]


def is_block(value: Any) -> bool:
    """Whether a configuration's block is [out features, in features]."""
    return isinstance(value, list) and len(value) == 2 and all(isinstance(size, int) and size > 0 for size in value)


def block_scales(suffix: str, shape: tuple[int, int], block: list[int]) -> Part:
    """Scales of blocks of `block` [out, in] features, the last ones cut."""
    blocks = (-(-shape[0] // block[0]), -(-shape[1] // block[1]))
    return Part(suffix, FLOATS, blocks, rows_per=block[0])


def number(suffix: str) -> Part:
    """A tensor of one number."""
    return Part(suffix, FLOATS, (), out_dim=None, also_shapes=((1,), (1, 1)))


def per_tensor(module: str, tensors: Tensors, inputs: str) -> LayerDescription:
    outputs, columns = tensors.shape(module, "weight", 2)
    return LayerDescription(
        module,
        (outputs, columns),
        StoredFormat(CODES, 0, inputs=InputFormat(CODES, inputs)),
        codes=Part("weight", ("f8e4m3",), (outputs, columns)),
        scales=number("weight_scale"),
        input_scale=number("input_scale") if inputs == "static" else None,
    )
