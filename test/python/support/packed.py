"""Small random models in the layouts of AutoAWQ, GPTQ, DeepSeek and ModelOpt, written from their public descriptions.

The reference of each is the float model of the values that the writer itself knows.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from support.frontend_models import random_model

#: Tensors of a layer, and the values that they mean.
Written = tuple[dict[str, torch.Tensor], torch.Tensor]


def save_packed(
    folder: Path,
    family: str,
    quantization: dict[str, Any],
    write: Callable[[torch.Tensor, torch.Generator], Written],
    file: str | None = None,
    **sizes: Any,
) -> Any:
    """Writes a checkpoint whose linears but lm_head `write` has quantized; returns the float model of its values.

    file: where `quantization` is written; None: into config.json.
    """
    model = random_model(family, **sizes)
    generator = torch.Generator().manual_seed(7)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and name != "lm_head":
            tensors, values = write(module.weight.data, generator)
            module.weight.data.copy_(values)
            del state[f"{name}.weight"]
            state |= {f"{name}.{suffix}": tensor.contiguous() for suffix, tensor in tensors.items()}
    if model.config.tie_word_embeddings:
        del state["lm_head.weight"]
    folder.mkdir(parents=True, exist_ok=True)
    model.config.save_pretrained(folder)
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    if file:
        (folder / file).write_text(json.dumps(quantization))
    else:
        edit_json(folder / "config.json", quantization_config=quantization)
    return model


def edit_json(file: Path, **changes: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def edit_tensors(folder: Path, edit: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    """Lets `edit` change the tensors of a folder in place."""
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def pack(codes: torch.Tensor, bits: int, order: list[int] | None = None) -> torch.Tensor:
    """int32 words of the last dimension; bits of word w from the lowest on: codes order[0], order[1], ... of w."""
    per = 32 // bits
    order = order or list(range(per))
    numbers = codes.numpy().astype(np.int64).reshape(*codes.shape[:-1], -1, per)
    words = np.bitwise_or.reduce([numbers[..., code] << (bits * place) for place, code in enumerate(order)])
    return torch.from_numpy(words.astype(np.uint32).view(np.int32))


def integer_codes(weight: torch.Tensor, group_of: torch.Tensor, bits: int, symmetric: bool) -> tuple[torch.Tensor, ...]:
    """Unsigned codes [N, K], zero points [N, G] and f16 scales [N, G] of a weight whose column k is in group_of[k]."""
    groups = int(group_of.max()) + 1
    top = 2**bits - 1
    scales, zeros = torch.zeros(weight.shape[0], groups), torch.zeros(weight.shape[0], groups)
    for group in range(groups):
        columns = weight[:, group_of == group]
        low, high = columns.amin(1).clamp(max=0), columns.amax(1).clamp(min=0)
        if symmetric:
            scales[:, group] = 2 * torch.maximum(-low, high) / top
            zeros[:, group] = (top + 1) // 2
        else:
            scales[:, group] = (high - low) / top
            zeros[:, group] = (-low / scales[:, group]).round().clamp(0, top)
    scales = scales.half()
    codes = (weight / scales.float()[:, group_of] + zeros[:, group_of]).round().clamp(0, top)
    return codes, zeros, scales


def values_of(codes: torch.Tensor, zeros: torch.Tensor, scales: torch.Tensor, group_of: torch.Tensor) -> torch.Tensor:
    return (codes - zeros[:, group_of]) * scales.float()[:, group_of]


def gptq(bits: int = 4, group: int = 32, symmetric: bool = True, desc_act: bool = False, v2: bool = False) -> Any:
    """Writer of GPTQ layers."""

    def write(weight: torch.Tensor, generator: torch.Generator) -> Written:
        columns = weight.shape[1]
        group_of = torch.arange(columns) // (columns if group == -1 else group)
        if desc_act:
            group_of = group_of[torch.randperm(columns, generator=generator)]
        codes, zeros, scales = integer_codes(weight, group_of, bits, symmetric)
        stored = zeros if v2 else (zeros - 1) % 2**bits
        tensors = {
            "qweight": pack(codes, bits).T,
            "qzeros": pack(stored.T.contiguous(), bits),
            "scales": scales.T,
            "g_idx": group_of.int(),
        }
        return tensors, values_of(codes, zeros, scales, group_of)

    return write


def awq(group: int = 32) -> Any:
    """Writer of AutoAWQ layers of version gemm."""

    def write(weight: torch.Tensor, _: torch.Generator) -> Written:
        group_of = torch.arange(weight.shape[1]) // group
        codes, zeros, scales = integer_codes(weight, group_of, 4, symmetric=False)
        order = [0, 2, 4, 6, 1, 3, 5, 7]
        tensors = {
            "qweight": pack(codes.T.contiguous(), 4, order),
            "qzeros": pack(zeros.T.contiguous(), 4, order),
            "scales": scales.T,
        }
        return tensors, values_of(codes, zeros, scales, group_of)

    return write


def block_fp8(rows: int = 24, columns: int = 32) -> Any:
    """Writer of DeepSeek's layers: f8e4m3 in blocks, the last ones cut."""

    def write(weight: torch.Tensor, _: torch.Generator) -> Written:
        height, width = weight.shape
        inverse = torch.empty(-(-height // rows), -(-width // columns))
        codes = torch.empty(height, width, dtype=torch.float8_e4m3fn)
        values = torch.empty(height, width)
        for i in range(inverse.shape[0]):
            for j in range(inverse.shape[1]):
                place = (slice(i * rows, (i + 1) * rows), slice(j * columns, (j + 1) * columns))
                inverse[i, j] = weight[place].abs().max() / 448
                codes[place] = (weight[place] / inverse[i, j]).to(torch.float8_e4m3fn)
                values[place] = codes[place].float() * inverse[i, j]
        return {"weight": codes, "weight_scale_inv": inverse}, values

    return write


def tensor_fp8(inputs: float | None = 0.0134) -> Any:
    """Writer of ModelOpt's and AutoFP8's layers: one scale a matrix, one of static inputs."""

    def write(weight: torch.Tensor, _: torch.Generator) -> Written:
        scale = weight.abs().max() / 448
        codes = (weight / scale).to(torch.float8_e4m3fn)
        tensors = {"weight": codes, "weight_scale": scale}
        if inputs is not None:
            tensors["input_scale"] = torch.tensor(inputs)
        return tensors, codes.float() * scale

    return write


GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, "sym": True}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm"}
BLOCK_FP8 = {
    "quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [24, 32],
}  # fmt: skip
MODELOPT = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}

_ASYMMETRIC = {**GPTQ, "sym": False}
#: Name -> quantization configuration, writer of a layer, file of the configuration.
LAYOUTS: dict[str, tuple[dict[str, Any], Any, str | None]] = {
    "gptq": (GPTQ, gptq(), None),
    "gptq_8_bits": ({**GPTQ, "bits": 8}, gptq(bits=8), None),
    "gptq_row": ({**GPTQ, "group_size": -1}, gptq(group=-1), None),
    "gptq_asymmetric": (_ASYMMETRIC, gptq(symmetric=False), None),
    "gptq_v2_asymmetric": ({**_ASYMMETRIC, "checkpoint_format": "gptq_v2"}, gptq(symmetric=False, v2=True), None),
    "gptq_v2_mislabelled": ({**GPTQ, "checkpoint_format": "gptq"}, gptq(v2=True), None),
    "gptq_desc_act": ({**GPTQ, "desc_act": True}, gptq(desc_act=True), None),
    "gptq_desc_act_asymmetric": (
        {**_ASYMMETRIC, "desc_act": True}, gptq(desc_act=True, symmetric=False), None,
    ),
    "autogptq": ({k: v for k, v in GPTQ.items() if k != "quant_method"}, gptq(), "quantize_config.json"),
    "awq": (AWQ, awq(), None),
    "deepseek_fp8": (BLOCK_FP8, block_fp8(), None),
    "modelopt_fp8": (MODELOPT, tensor_fp8(), "hf_quant_config.json"),
    "modelopt_fp8_in_config": ({"quant_method": "modelopt", "quant_algo": "FP8"}, tensor_fp8(), None),
    "autofp8": ({"quant_method": "fp8", "activation_scheme": "dynamic"}, tensor_fp8(inputs=None), None),
}  # fmt: skip


def save_layout(folder: Path, layout: str, family: str = "llama", **sizes: Any) -> Any:
    """A checkpoint in one of `LAYOUTS`; returns the float model of its values."""
    quantization, write, file = LAYOUTS[layout]
    return save_packed(folder, family, quantization, write, file, **sizes)
