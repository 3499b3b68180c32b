"""Quantized checkpoints as values: the imported graph over dequantized weights computes what transformers computes.

2e-4 is the tolerance of test_numerics.py: both sides multiply the same values in float32.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.compressed import SCHEMES, decompressed_model, save_compressed, transformers_logits
from support.dense import TOKENS, logits_of, reference_logits
from support.packed import LAYOUTS, edit_tensors, save_layout

from llmc.frontends import FrontendError, ImportOptions, import_checkpoint
from llmc.frontends.checkpoint import open_checkpoint

DEQUANTIZE = ImportOptions(dequantize=True)


def check(folder: Path, expected: np.ndarray) -> None:
    imported = import_checkpoint(folder, DEQUANTIZE)
    assert expected.std() > 0.01
    np.testing.assert_allclose(logits_of(imported, tokens(), np.arange(TOKENS)), expected, rtol=2e-4, atol=2e-4)
    assert imported.checkpoint.check_values() == []


def tokens() -> np.ndarray:
    return np.random.default_rng(3).integers(3, 128, TOKENS)


@pytest.mark.parametrize("family", ["llama", "qwen3"])
@pytest.mark.parametrize("scheme", sorted(set(SCHEMES) - {"w4a16_asymmetric"}))
def test_compressed_tensors(tmp_path: Path, family: str, scheme: str) -> None:
    folder = save_compressed(tmp_path, family, scheme)
    check(folder, transformers_logits(folder, tokens(), quantize_inputs=False))


@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_compressed_tensors_with_zero_points(tmp_path: Path, family: str) -> None:
    """transformers cannot load packed zero points; the library's own decompression gives the values."""
    folder = save_compressed(tmp_path, family, "w4a16_asymmetric")
    model = decompressed_model(folder, family, "w4a16_asymmetric")
    check(folder, reference_logits(model, tokens(), np.arange(TOKENS)))


@pytest.mark.parametrize("family", ["llama", "qwen2"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_other_layouts(tmp_path: Path, family: str, layout: str) -> None:
    model = save_layout(tmp_path, layout, family)
    check(tmp_path, reference_logits(model, tokens(), np.arange(TOKENS)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_are_read_in_ranges(tmp_path: Path, layout: str) -> None:
    """Ranges that begin and end inside words and blocks give the rows of the whole."""
    save_layout(tmp_path, layout)
    checkpoint = open_checkpoint(tmp_path, dequantize=True)
    name = "model.layers.1.mlp.down_proj.weight"
    whole = checkpoint.read(name)
    assert whole.shape == (64, 96)
    for rows in (slice(0, 1), slice(3, 5), slice(7, 41), slice(60, 64)):
        np.testing.assert_array_equal(checkpoint.read(name, rows), whole[rows])


def test_values_of_codes_are_not_taken_unasked(tmp_path: Path) -> None:
    save_layout(tmp_path, "awq")
    checkpoint = open_checkpoint(tmp_path)
    with pytest.raises(FrontendError, match=r"down_proj.weight' is quantized \(4-bit .* zero points.*--dequantize"):
        checkpoint.read("model.layers.0.mlp.down_proj.weight")


def test_biases_of_zeros_that_gptq_adds(tmp_path: Path) -> None:
    save_layout(tmp_path, "gptq")
    name = "model.layers.0.mlp.down_proj.bias"
    edit_tensors(tmp_path, lambda tensors: tensors.update({name: torch.zeros(64)}))
    assert import_checkpoint(tmp_path, DEQUANTIZE).ignored == [name]
    edit_tensors(tmp_path, lambda tensors: tensors.update({name: torch.ones(64)}))
    with pytest.raises(FrontendError, match=r"1 tensors that the model does not use.*\n.*down_proj.bias"):
        import_checkpoint(tmp_path, DEQUANTIZE)


def kv_scales(value: float) -> Any:
    names = [f"model.layers.{layer}.self_attn.{kind}_scale" for layer in range(2) for kind in "kv"]
    return lambda tensors: tensors.update({name: torch.tensor([value]) for name in names})


def test_kv_scales_are_kept_and_named(tmp_path: Path) -> None:
    save_layout(tmp_path, "modelopt_fp8")
    edit_tensors(tmp_path, kv_scales(0.25))
    checkpoint = import_checkpoint(tmp_path, DEQUANTIZE).checkpoint
    assert checkpoint.kv_scales() == {
        f"model.layers.{layer}.self_attn.{kind}_scale": 0.25 for layer in range(2) for kind in "kv"
    }
    assert checkpoint.check_values() == [
        "4 scales of keys and values (0.25 to 0.25) are not used: the KV cache has no 8-bit type yet"
    ]
    edit_tensors(tmp_path, kv_scales(1.0))
    assert "all of them are 1.0" in open_checkpoint(tmp_path).check_values()[0]
    edit_tensors(tmp_path, kv_scales(float("nan")))
    with pytest.raises(FrontendError, match=r"scales of keys and values must be positive .*k_scale = nan"):
        open_checkpoint(tmp_path).check_values()


def test_scales_of_one_are_reported(tmp_path: Path) -> None:
    save_layout(tmp_path, "modelopt_fp8")
    name = "model.layers.0.mlp.up_proj.weight_scale"
    edit_tensors(tmp_path, lambda tensors: tensors.update({name: torch.tensor(1.0)}))
    (warning,) = open_checkpoint(tmp_path).check_values()
    assert warning.startswith("all scales of 1 of 14 quantized layers are 1.0 (model.layers.0.mlp.up_proj.weight)")
