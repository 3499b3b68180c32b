"""Quantized checkpoints with something wrong: each is one `FrontendError` that names it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from support.compressed import save_compressed
from support.frontend_models import save_config, save_model
from support.packed import AWQ, BLOCK_FP8, GPTQ, edit_json, edit_tensors, save_layout

from llmc.frontends import FrontendError, ImportOptions, import_checkpoint

DOWN = "model.layers.0.mlp.down_proj"
Tensors = dict[str, torch.Tensor]


def drop(suffix: str) -> Callable[[Tensors], Any]:
    return lambda tensors: tensors.pop(f"{DOWN}.{suffix}")


def replace(suffix: str, make: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Tensors], Any]:
    return lambda tensors: tensors.update({f"{DOWN}.{suffix}": make(tensors[f"{DOWN}.{suffix}"]).contiguous()})


def with_value(value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def make(tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.clone()
        tensor.view(-1)[0] = value
        return tensor

    return make


def read_all(folder: Path) -> None:
    """Everything that a compilation reads of a checkpoint."""
    checkpoint = import_checkpoint(folder, ImportOptions(dequantize=True)).checkpoint
    checkpoint.check_values()
    for name in checkpoint.names():
        checkpoint.read(name)


@pytest.mark.parametrize(
    ("layout", "edit", "message"),
    [
        ("gptq", drop("scales"), f"layer '{DOWN}' lacks '{DOWN}.scales': expected f32 or .* of shape [3, 64]"),
        ("gptq", drop("qweight"), f"lacks 1 tensors of the model:\n  {DOWN}.weight"),
        ("gptq_desc_act", drop("g_idx"), f"layer '{DOWN}' lacks '{DOWN}.g_idx': expected i32 of shape [96]"),
        ("awq", drop("qzeros"), f"layer '{DOWN}' lacks '{DOWN}.qzeros': expected i32 of shape [3, 8]"),
        ("deepseek_fp8", drop("weight_scale_inv"), f"lacks '{DOWN}.weight_scale_inv': expected f32 .* of shape [3, 3]"),
        ("modelopt_fp8", drop("input_scale"), f"lacks '{DOWN}.input_scale'"),
        ("w4a16", drop("weight_scale"), f"lacks '{DOWN}.weight_scale': expected f32 .* of shape [64, 3]"),
        ("w4a16", drop("weight_shape"), f"lacks '{DOWN}.weight_shape'"),
        ("fp8_static", drop("input_scale"), f"lacks '{DOWN}.input_scale'"),
        ("gptq", replace("scales", with_value(float("nan"))), f"{DOWN}.scales holds 1 scales that are infinite, NaN"),
        ("awq", replace("scales", with_value(float("inf"))), f"{DOWN}.scales holds 1 scales that are infinite, NaN"),
        ("w4a16", replace("weight_scale", with_value(-1.0)), f"{DOWN}.weight_scale holds 1 scales .* negative"),
        ("fp8_static", replace("input_scale", with_value(0.0)), f"{DOWN}.input_scale is 0.0: expected a positive"),
        ("fp8_dynamic", replace("weight", with_value(float("nan"))), f"{DOWN}.weight holds NaN codes"),
        (
            "gptq",
            replace("qweight", lambda words: words[:-1]),
            "has 88 in features, which groups of 32 do not divide: the group size .* (GPTQ) does not fit",
        ),
        (
            "awq",
            replace("qweight", lambda words: words[:, :-1]),
            f"'{DOWN}.scales' has shape [3, 64]: expected [3, 56] for 56 out and 96 in features",
        ),
        (
            "w4a16",
            replace("weight_packed", lambda words: words[:-3]),
            f"'{DOWN}.weight_packed' has shape [61, 12]: expected [64, 12] for 64 out and 96 in features",
        ),
        (
            "w4a16",
            replace("weight_shape", lambda _: torch.tensor([64, 128])),
            f"'{DOWN}.weight_packed' has shape [64, 12]: expected [64, 16]",
        ),
        ("gptq", replace("qweight", lambda words: words.float()), f"'{DOWN}.qweight' has dtype f32: expected i32"),
        (
            "gptq_desc_act",
            replace("g_idx", with_value(3)),
            f"{DOWN}.g_idx sends in features to groups 0 to 3: expected 0 to 2",
        ),
        (
            "gptq_desc_act",
            replace("g_idx", lambda order: torch.where(order == 1, 2, order)),
            f"{DOWN}.g_idx is no permutation of groups of 32: group 1 has 0 in features",
        ),
        (
            "gptq",
            replace("g_idx", lambda order: order.flip(0)),
            f"{DOWN}.g_idx puts in features out of order, although the configuration says desc_act = false",
        ),
        (
            "gptq",
            replace("qzeros", with_value(0)),
            f"{DOWN}.qzeros holds zero points, although the configuration calls the format symmetric",
        ),
        (
            "w4a16",
            lambda tensors: tensors.update({f"{DOWN}.extra_scale": torch.ones(1)}),
            f"1 tensors that the model does not use .*:\n  {DOWN}.extra_scale",
        ),
        (
            "fp8_dynamic",
            lambda tensors: tensors.update({f"{DOWN}.input_scale": torch.ones(1)}),
            f"1 tensors that the model does not use .*:\n  {DOWN}.input_scale",
        ),
    ],
)  # fmt: skip
def test_wrong_tensors(tmp_path: Path, layout: str, edit: Callable[[Tensors], Any], message: str) -> None:
    save(tmp_path, layout)
    read_all(tmp_path)
    edit_tensors(tmp_path, edit)
    with pytest.raises(FrontendError) as error:
        read_all(tmp_path)
    parts = message.split(".*")
    places = [str(error.value).find(part) for part in parts]
    assert -1 not in places, str(error.value)
    assert places == sorted(places), str(error.value)


def save(folder: Path, layout: str) -> None:
    if layout.startswith(("w", "fp8")):
        save_compressed(folder, "llama", layout)
    else:
        save_layout(folder, layout)


@pytest.mark.parametrize(
    ("layout", "changes", "message"),
    [
        ("gptq", {"quant_method": "hqq"}, "quantized by method 'hqq', which llmc does not read: expected one of awq, "),
        ("gptq", {"bits": 3}, "(GPTQ) has bits = 3, which llmc does not read: expected 4 or 8"),
        ("gptq", {"bits": "four"}, "has bits = 'four', which llmc does not read: expected a whole number"),
        ("gptq", {"group_size": 16}, f"'{DOWN}.scales' has shape [3, 64]: expected [6, 64]"),
        ("gptq", {"group_size": 64}, "has 96 in features, which groups of 64 do not divide"),
        ("gptq", {"group_size": 0}, "has group_size = 0, which llmc does not read: expected -1 or a positive number"),
        ("gptq", {"checkpoint_format": "marlin"}, "has checkpoint_format = 'marlin'"),
        ("gptq", {"dynamic": {"+:.*": {"bits": 8}}}, "has dynamic = {'+:.*': {'bits': 8}}"),
        ("awq", {"bits": 8}, "(AutoAWQ) has bits = 8, which llmc does not read: expected 4"),
        ("awq", {"version": "gemv"}, "has version = 'gemv', which llmc does not read: expected gemm"),
        ("awq", {"zero_point": False}, f"{DOWN}.qzeros holds zero points"),
        ("deepseek_fp8", {"fmt": "e5m2"}, "has fmt = 'e5m2'"),
        ("deepseek_fp8", {"weight_block_size": [32, 32]},
         f"'{DOWN}.weight_scale_inv' has shape [3, 3]: expected [2, 3]"),
        ("deepseek_fp8", {"weight_block_size": [0, 32]}, "expected two positive numbers"),
        ("deepseek_fp8", {"activation_scheme": "static"}, "expected dynamic, where weights have blocks"),
        ("modelopt_fp8_in_config", {"quant_algo": "NVFP4"}, "(ModelOpt) has quant_algo = 'NVFP4'"),
        ("fp8_dynamic", {"format": "marlin-24"}, "has format = 'marlin-24', which llmc does not read: expected pack"),
        ("fp8_dynamic", {"config_groups": {}}, "has config_groups = {}"),
        ("fp8_dynamic", {"sparsity_config": {"format": "sparse-24-bitmask"}}, "has sparsity_config = "),
        ("fp8_dynamic", {"config_groups": {"a": {"targets": ["re:.*up_proj"], "weights": {"num_bits": 8}}}},
         f"the layer '{DOWN}' is quantized, but no config group"),
        ("w4a16", {"config_groups": {"a": {"targets": ["Linear"], "weights": {"num_bits": 2}}}},
         "has a.weights = 'int of 2 bits'"),
    ],
)  # fmt: skip
def test_wrong_configurations(tmp_path: Path, layout: str, changes: dict[str, Any], message: str) -> None:
    save(tmp_path, layout)
    edit_quantization(tmp_path, changes)
    with pytest.raises(FrontendError) as error:
        read_all(tmp_path)
    assert message in str(error.value)


def edit_quantization(folder: Path, changes: dict[str, Any]) -> None:
    file = folder / "config.json"
    found = json.loads(file.read_text())["quantization_config"]
    edit_json(file, quantization_config={**found, **changes})


def test_a_configuration_over_plain_weights(tmp_path: Path) -> None:
    save_model(tmp_path, "llama")
    for quantization in (GPTQ, AWQ, BLOCK_FP8):
        edit_json(tmp_path / "config.json", quantization_config=quantization)
        with pytest.raises(FrontendError, match=r"has a quantization configuration .* but no tensor of such a layer"):
            read_all(tmp_path)


def test_a_configuration_without_weights(tmp_path: Path) -> None:
    edit_json(save_config(tmp_path, "llama") / "config.json", quantization_config=GPTQ)
    with pytest.raises(FrontendError, match=r"is quantized \(GPTQ\) and has no weights"):
        import_checkpoint(tmp_path)


def test_files_beside_the_configuration_that_are_no_objects(tmp_path: Path) -> None:
    save_layout(tmp_path, "modelopt_fp8")
    (tmp_path / "hf_quant_config.json").write_text('{"quantization": "FP8"}')
    with pytest.raises(FrontendError, match="expected an object 'quantization', found 'FP8'"):
        import_checkpoint(tmp_path)
    (tmp_path / "hf_quant_config.json").write_text("{")
    with pytest.raises(FrontendError, match=r"unreadable .*hf_quant_config.json"):
        import_checkpoint(tmp_path)
    edit_json(tmp_path / "config.json", quantization_config="fp8")
    with pytest.raises(FrontendError, match="quantization_config must be an object, found 'fp8'"):
        import_checkpoint(tmp_path)
