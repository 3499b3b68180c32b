"""Small random models quantized by the public library compressed-tensors, and what transformers makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from compressed_tensors.compressors import ModelCompressor
from compressed_tensors.compressors.base import BaseCompressor
from compressed_tensors.quantization import QuantizationConfig, QuantizationScheme, apply_quantization_config
from compressed_tensors.quantization.utils import calculate_qparams
from safetensors.torch import load_file

from support.frontend_models import random_model

FLOAT8 = {"num_bits": 8, "type": "float"}
INT8 = {"num_bits": 8, "type": "int"}
TOKEN = {"strategy": "token", "dynamic": True}

#: Name -> (weights, input activations) of the scheme that llm-compressor calls so.
SCHEMES: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "fp8_dynamic": ({**FLOAT8, "strategy": "channel"}, {**FLOAT8, **TOKEN}),
    "fp8_static": ({**FLOAT8, "strategy": "tensor"}, {**FLOAT8, "strategy": "tensor"}),
    "fp8_block": (
        {**FLOAT8, "strategy": "block", "block_structure": [24, 32]},
        {**FLOAT8, "strategy": "group", "group_size": 32, "dynamic": True},
    ),
    "w8a8": ({**INT8, "strategy": "channel"}, {**INT8, **TOKEN}),
    "w8a8_static": ({**INT8, "strategy": "channel"}, {**INT8, "strategy": "tensor"}),
    "w8a16": ({**INT8, "strategy": "channel"}, None),
    "w4a16": ({"num_bits": 4, "strategy": "group", "group_size": 32}, None),
    "w4a16_channel": ({"num_bits": 4, "strategy": "channel"}, None),
    "w4a16_asymmetric": ({"num_bits": 4, "strategy": "group", "group_size": 32, "symmetric": False}, None),
}


def save_compressed(
    folder: Path,
    family: str,
    scheme: str,
    ignore: tuple[str, ...] = ("lm_head",),
    targets: tuple[str, ...] = ("Linear",),
    **sizes: Any,
) -> Path:
    """A checkpoint of `scheme` with scales of the largest values, written by the library and transformers."""
    weights, inputs = SCHEMES[scheme]
    group = QuantizationScheme(targets=list(targets), weights=weights, input_activations=inputs)
    return save_groups(folder, random_model(family, **sizes), {"group_0": group}, ignore)


def save_groups(folder: Path, model: Any, groups: dict[str, Any], ignore: tuple[str, ...], **more: Any) -> Path:
    apply_quantization_config(
        model, QuantizationConfig(config_groups=groups, ignore=list(ignore), **more), False, False
    )
    for module in model.modules():
        if scheme := getattr(module, "quantization_scheme", None):
            if hasattr(module, "weight_scale"):
                scale, zero = qparams(module.weight.data, scheme.weights)
                module.weight_scale.data.copy_(scale.reshape(module.weight_scale.shape))
                module.weight_zero_point.data.copy_(zero.reshape(module.weight_zero_point.shape))
            if hasattr(module, "input_scale"):
                # Inputs of a random model hardly leave +-6.
                module.input_scale.data.fill_(6.0 / (448 if scheme.input_activations.type == "float" else 127))
    compressor = ModelCompressor.from_pretrained_model(model)
    compressor.compress_model(model)
    model.save_pretrained(folder, state_dict=model.state_dict())
    compressor.update_config(folder)
    return folder


def qparams(weight: torch.Tensor, args: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales and zero points from the extremes of what shares them."""
    rows, columns = weight.shape
    if args.strategy == "tensor":
        return calculate_qparams(weight.min(), weight.max(), args)
    if args.strategy == "block":
        height, width = args.block_structure
        padded = torch.zeros(-(-rows // height) * height, -(-columns // width) * width)
        padded[:rows, :columns] = weight
        blocks = padded.reshape(padded.shape[0] // height, height, padded.shape[1] // width, width)
        return calculate_qparams(blocks.amin((1, 3)), blocks.amax((1, 3)), args)
    grouped = weight.reshape(rows, -1, args.group_size if args.strategy == "group" else columns)
    return calculate_qparams(grouped.amin(-1), grouped.amax(-1), args)


def transformers_logits(folder: Path, tokens: np.ndarray, quantize_inputs: bool) -> np.ndarray:
    """float32 logits [T, V] of the checkpoint as transformers loads it; inputs of linears quantized or not."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    for module in model.modules():
        scheme = getattr(module, "quantization_scheme", None)
        if scheme is not None and not quantize_inputs:
            scheme.input_activations = None
    with torch.no_grad():
        return model.eval()(input_ids=torch.from_numpy(tokens)[None], use_cache=False).logits[0].numpy()


def decompressed_model(folder: Path, family: str, scheme: str) -> Any:
    """The float model of a checkpoint's values, by the library's decompression of each layer."""
    weights, inputs = SCHEMES[scheme]
    parsed = QuantizationScheme(targets=["Linear"], weights=weights, input_activations=inputs)
    compressor = BaseCompressor.load_from_registry("pack-quantized")
    tensors = load_file(folder / "model.safetensors")
    model = random_model(family)
    for name in [name for name in tensors if name.endswith(".weight_packed")]:
        layer = name.removesuffix(".weight_packed")
        parts = {n.removeprefix(f"{layer}."): tensor for n, tensor in tensors.items() if n.startswith(f"{layer}.")}
        parts["weight_shape"] = torch.Size(parts["weight_shape"].tolist())
        model.get_submodule(layer).weight.data.copy_(compressor.decompress(parts, parsed)["weight"])
    return model
