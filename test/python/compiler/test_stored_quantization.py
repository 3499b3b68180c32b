"""Checkpoints that others quantized, compiled as they are: the engine multiplies the stored codes."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from compressed_tensors.quantization import QuantizationScheme
from support.compiling import PROMPT, compiled, logits, refusal
from support.compressed import SCHEMES, decompressed_model, save_compressed, save_groups, transformers_logits
from support.dense import TOKENS, reference_logits
from support.frontend_models import random_model, save_model
from support.packed import edit_tensors, save_layout

from llmc.compiler.cli import main
from llmc.compiler.engine import Engine

POSITIONS = np.arange(TOKENS)


# The same codes times the same scales in float32. Where inputs are quantized too, a sum that rounds differently may
# end on the other side of a step between two codes, 2^-4 of a value, now and then.
@pytest.mark.parametrize(
    ("scheme", "name", "dtype", "tolerance"),
    [
        ("fp8_dynamic", "fp8_rowwise", "f8e4m3", 2e-2),
        ("w8a16", "int8_wo", "i8", 2e-4),
        ("w4a16", "int4_wo_g32", "u8", 2e-4),
        ("w4a16_channel", "int4_wo_row", "u8", 2e-4),
    ],
)
@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_logits_of_transformers(
    tmp_path: Path, family: str, scheme: str, name: str, dtype: str, tolerance: float
) -> None:
    folder = save_compressed(tmp_path / "model", family, scheme)
    engine = compiled(folder, tmp_path / "engine")
    expected = transformers_logits(folder, PROMPT, quantize_inputs=True)
    np.testing.assert_allclose(logits(engine), expected, rtol=tolerance, atol=tolerance)
    manifest = Engine(engine).manifest
    assert manifest["precision"]["quantization"] == name
    kinds = {row["name"]: row["dtype"] for row in manifest["weights"]["tensors"]}
    assert kinds["model.layers.0.self_attn.qkv_proj.weight"] == dtype
    assert kinds["lm_head.weight"] == "f32"


@pytest.mark.parametrize(
    ("layout", "name"),
    [
        ("gptq", "int4_wo_g32"),
        ("gptq_8_bits", "int8_wo_g32"),
        ("gptq_row", "int4_wo_row"),
        ("gptq_v2_mislabelled", "int4_wo_g32"),
        ("gptq_asymmetric", "int4_wo_g32_zp"),
        ("gptq_v2_asymmetric", "int4_wo_g32_zp"),
        ("awq", "int4_wo_g32_zp"),
    ],
)
@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_gptq_and_awq(tmp_path: Path, family: str, layout: str, name: str) -> None:
    model = save_layout(tmp_path / "model", layout, family)
    engine = compiled(tmp_path / "model", tmp_path / "engine")
    assert Engine(engine).manifest["precision"]["quantization"] == name
    np.testing.assert_allclose(logits(engine), reference_logits(model, PROMPT, POSITIONS), rtol=2e-4, atol=2e-4)


def test_zero_points_of_compressed_tensors(tmp_path: Path) -> None:
    """transformers cannot load packed zero points; the library's own decompression gives the values."""
    folder = save_compressed(tmp_path / "model", "llama", "w4a16_asymmetric")
    model = decompressed_model(folder, "llama", "w4a16_asymmetric")
    found = logits(compiled(folder, tmp_path / "engine"))
    np.testing.assert_allclose(found, reference_logits(model, PROMPT, POSITIONS), rtol=2e-4, atol=2e-4)


def test_refit_of_zero_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a checkpoint with them, and neither of one without nor of one in floats."""
    save_layout(tmp_path / "model", "awq")
    whole = compiled(tmp_path / "model", tmp_path / "whole")
    stripped = compiled(tmp_path / "model", tmp_path / "stripped", "--strip_weights")
    save_layout(tmp_path / "symmetric", "gptq")
    message = refusal(capsys, "refit", str(stripped), str(tmp_path / "symmetric"))
    assert "is quantized (4-bit integers in groups of 32, inputs as they are), the engine needs i4" in message
    assert "in groups of 32 and zero points" in message
    save_model(tmp_path / "plain", "llama")
    message = refusal(capsys, "refit", str(stripped), str(tmp_path / "plain"))
    assert "expected a checkpoint that stores zero points" in message
    assert main(["refit", str(stripped), str(tmp_path / "model"), "--quiet"]) == 0
    assert (whole / "weights.safetensors").read_bytes() == (stripped / "weights.safetensors").read_bytes()


def test_formats_of_layers_may_differ(tmp_path: Path) -> None:
    """8-bit attention, 4-bit MLP, and a projection that is left out of a merged one."""
    (eight, _), (four, _) = SCHEMES["w8a16"], SCHEMES["w4a16"]
    groups = {
        "attention": QuantizationScheme(targets=["re:.*self_attn.*"], weights=eight),
        "rest": QuantizationScheme(targets=["Linear"], weights=four),
    }
    folder = tmp_path / "model"
    save_groups(folder, random_model("llama"), groups, ("lm_head", "model.layers.1.mlp.up_proj"))
    engine = compiled(folder, tmp_path / "engine")
    assert Engine(engine).manifest["precision"]["quantization"] == "int4_wo_g32+int8_wo"
    expected = transformers_logits(folder, PROMPT, quantize_inputs=True)
    np.testing.assert_allclose(logits(engine), expected, rtol=2e-4, atol=2e-4)


def test_a_quantized_head(tmp_path: Path) -> None:
    folder = save_compressed(tmp_path / "model", "llama", "w8a16", ignore=())
    engine = compiled(folder, tmp_path / "engine")
    kinds = {row["name"]: row["dtype"] for row in Engine(engine).manifest["weights"]["tensors"]}
    assert kinds["lm_head.weight"] == "i8"
    expected = transformers_logits(folder, PROMPT, quantize_inputs=True)
    np.testing.assert_allclose(logits(engine), expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("layout", ["gptq_desc_act", "gptq_desc_act_asymmetric", "deepseek_fp8", "modelopt_fp8"])
def test_dequantized(tmp_path: Path, capsys: pytest.CaptureFixture[str], layout: str) -> None:
    """What the target cannot run as it is: refused with the way out, which then gives the layout's values."""
    folder = tmp_path / "model"
    model = save_layout(folder, layout)
    message = refusal(capsys, "compile", str(folder), "-o", str(tmp_path / "refused"))
    assert "which target host does not run yet (it runs fp8_rowwise, int8_wo, int4_wo" in message
    assert "--dequantize compiles the values of the layers instead" in message
    engine = compiled(folder, tmp_path / "engine", "--dequantize")
    assert "quantization" not in Engine(engine).manifest["precision"]
    np.testing.assert_allclose(logits(engine), reference_logits(model, PROMPT, POSITIONS), rtol=2e-4, atol=2e-4)


def test_refit_takes_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save_compressed(tmp_path / "model", "llama", "w4a16")
    whole = compiled(folder, tmp_path / "whole")
    stripped = compiled(folder, tmp_path / "stripped", "--strip_weights")
    assert main(["refit", str(stripped), str(folder), "--quiet"]) == 0
    assert (whole / "weights.safetensors").read_bytes() == (stripped / "weights.safetensors").read_bytes()
    other = save_compressed(tmp_path / "other", "llama", "w8a16")
    message = refusal(capsys, "refit", str(stripped), str(other), "--force")
    assert "is quantized (8-bit integers, inputs as they are), the engine needs i4 in groups of 32" in message
    assert main(["refit", str(stripped), str(other), "--force", "--dequantize", "--quiet"]) == 0
    plain = compiled(save_model(tmp_path / "plain", "llama"), tmp_path / "float")
    message = refusal(capsys, "refit", str(plain), str(folder), "--force")
    assert "is quantized (4-bit integers in groups of 32, inputs as they are), the engine needs its values" in message


def test_quantized_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save_compressed(tmp_path / "model", "llama", "w8a16")
    command = ["compile", str(folder), "-o", str(tmp_path / "engine"), "--qformat", "fp8_rowwise"]
    assert "is quantized already ('model.layers.0.mlp.down_proj.weight': 8-bit integers" in refusal(capsys, *command)
    engine = compiled(folder, tmp_path / "again", "--qformat", "fp8_rowwise", "--dequantize", "--no_quality_gate")
    assert Engine(engine).manifest["precision"]["quantization"] == "fp8_rowwise"


def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = save_model(tmp_path / "plain", "llama")
    out = ["-o", str(tmp_path / "engine")]
    assert "--dequantize: no layer of" in refusal(capsys, "compile", str(plain), *out, "--dequantize")
    folder = save_compressed(tmp_path / "model", "llama", "fp8_dynamic")
    message = refusal(capsys, "compile", str(folder), *out, "--target", "sm_80")
    assert "is stored as fp8_rowwise" in message
    assert "target sm_80 takes none; targets that run it: host" in message
    shutil.rmtree(folder)
    save_compressed(folder, "llama", "w8a16", ignore=(), targets=("Linear", "Embedding"))
    assert "1 quantized tensors are no linears of the model ('model.embed_tokens.weight'" in refusal(
        capsys, "compile", str(folder), *out
    )


def test_values_are_checked_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save_compressed(tmp_path / "model", "llama", "fp8_dynamic")
    scale = "model.layers.1.self_attn.o_proj.weight_scale"
    edit_tensors(folder, lambda tensors: tensors.update({scale: torch.ones(64, 1)}))
    capsys.readouterr()
    compiled(folder, tmp_path / "engine")
    assert "llmc: warning: all scales of 1 of 14 quantized layers are 1.0" in capsys.readouterr().err
    edit_tensors(folder, lambda tensors: tensors.update({scale: torch.full((64, 1), torch.nan)}))
    message = refusal(capsys, "compile", str(folder), "-o", str(tmp_path / "other"))
    assert f"{scale} holds 64 scales that are infinite, NaN or negative among 64" in message
    assert not (tmp_path / "other").exists()
