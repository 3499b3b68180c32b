"""llmc quantize: a checkpoint that transformers loads, and that compiles to what quantizing in the compile gives."""

from __future__ import annotations

import filecmp
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from support import tiny_llama
from support.compiling import PROMPT, compiled, logits, refusal
from support.compressed import save_compressed, transformers_logits
from support.frontend_models import save_model

from llmc.compiler.cli import main
from llmc.compiler.quantization import checkpoint_writer

FORMATS = ("fp8_rowwise", "int8_wo", "int4_wo")
#: In features of all linears are multiples of a group of int4_wo.
SIZES: dict[str, Any] = {"hidden_size": 128, "head_dim": 32, "intermediate_size": 192}


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a tokenizer, for the gate."""
    return tiny_llama.save_model(tmp_path_factory.mktemp("quantize") / "llama", **SIZES)


def quantized(model: Path, out: Path, *options: str) -> Path:
    assert main(["quantize", str(model), "-o", str(out), "--quiet", *options]) == 0
    return out


def same_files(first: Path, second: Path) -> None:
    names = sorted(str(path.relative_to(first)) for path in first.rglob("*") if path.is_file())
    assert names == sorted(str(path.relative_to(second)) for path in second.rglob("*") if path.is_file())
    assert filecmp.cmpfiles(first, second, names, shallow=False) == (names, [], [])


@pytest.mark.parametrize("format", FORMATS)
def test_compiles_to_what_quantizing_in_the_compile_gives(llama: Path, tmp_path: Path, format: str) -> None:
    """Every byte of the engine."""
    options = ["--exclude", "*.layers.1.mlp.*", "--qformat", format]
    options += ["--no_quality_gate"]
    checkpoint = quantized(llama, tmp_path / "checkpoint", *options)
    same_files(compiled(checkpoint, tmp_path / "two"), compiled(llama, tmp_path / "one", *options))


# The tolerances of test_stored_quantization.py.
@pytest.mark.parametrize(("format", "tolerance"), [("fp8_rowwise", 2e-2), ("int8_wo", 2e-4), ("int4_wo", 2e-4)])
@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_loads_in_transformers(tmp_path: Path, family: str, format: str, tolerance: float) -> None:
    model = save_model(tmp_path / "model", family, **SIZES)
    options = ["--qformat", format, "--exclude", "*.0.self_attn.q_proj", "--quantize_lm_head", "--no_quality_gate"]
    checkpoint = quantized(model, tmp_path / "checkpoint", *options)
    expected = transformers_logits(checkpoint, PROMPT, quantize_inputs=True)
    assert np.abs(expected - transformers_logits(model, PROMPT, quantize_inputs=True)).max() > 0.01
    found = logits(compiled(checkpoint, tmp_path / "engine"))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    config = json.loads((checkpoint / "config.json").read_text())["quantization_config"]
    assert config["ignore"] == ["model.layers.0.self_attn.q_proj"]


def test_shards(llama: Path, tmp_path: Path) -> None:
    """Files of a limited size hold the same tensors; codes and scales stay together."""
    options = ["--qformat", "int8_wo", "--no_quality_gate"]
    whole = quantized(llama, tmp_path / "whole", *options)
    parts = quantized(llama, tmp_path / "parts", *options, "--max_shard_size", "0.0001")
    index = json.loads((parts / "model.safetensors.index.json").read_text())
    files = sorted(path.name for path in parts.glob("*.safetensors"))
    assert files == sorted(set(index["weight_map"].values()))
    assert len(files) > 3
    assert all((parts / name).stat().st_size < 160_000 for name in files)  # the embedding alone has 133,120 bytes
    found: dict[str, torch.Tensor] = {}
    for name in files:
        tensors = load_file(parts / name)
        assert all(index["weight_map"][tensor] == name for tensor in tensors)
        packed = [tensor for tensor in tensors if tensor.endswith("weight_packed")]
        assert all(tensor.replace("weight_packed", "weight_scale") in tensors for tensor in packed)
        found |= tensors
    expected = load_file(whole / "model.safetensors")
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in found)
    assert index["metadata"]["total_size"] == sum(t.numel() * t.element_size() for t in found.values())
    same_files(compiled(whole, tmp_path / "one"), compiled(parts, tmp_path / "two"))


def test_what_is_not_quantized_is_copied(llama: Path, tmp_path: Path) -> None:
    checkpoint = quantized(llama, tmp_path / "checkpoint", "--qformat", "fp8_rowwise", "--no_quality_gate")
    before, after = load_file(llama / "model.safetensors"), load_file(checkpoint / "model.safetensors")
    plain = [name for name in before if "proj" not in name]
    assert len(plain) == 7
    assert all(torch.equal(before[name], after[name]) for name in plain)
    assert {name for name in after if "proj" not in name} == set(plain)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (llama / name).read_bytes() == (checkpoint / name).read_bytes()
    config = json.loads((checkpoint / "config.json").read_text())
    del config["quantization_config"]
    assert config == json.loads((llama / "config.json").read_text())


def test_a_failure_leaves_nothing(
    llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["quantize", str(llama), "-o", str(out / "checkpoint"), "--qformat", "int4_wo"]
    message = refusal(capsys, *command, "--max_kl_divergence", "1e-9")
    assert "--qformat int4_wo changes this model too much" in message
    assert list(out.iterdir()) == []

    def interrupted(*arguments: Any, **named: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint_writer, "check_quality", interrupted)
    assert main([*command, "--quiet"]) == 130
    assert list(out.iterdir()) == []


def test_the_gate_measures_what_was_written(llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quantize", str(llama), "-o", str(tmp_path / "checkpoint"), "--qformat", "int8_wo"]) == 0
    printed = capsys.readouterr().err
    assert "14 linears in int8_wo" in printed
    assert "quality gate: KL divergence" in printed
    report = json.loads((tmp_path / "checkpoint.quality.json").read_text())
    assert len(report["layers"]) == 14
    assert 0 < report["gate"]["kl_divergence"] < 0.01


def test_quantized_checkpoints_and_gguf_blocks_are_quantized_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = save_compressed(tmp_path / "model", "llama", "w8a16", **SIZES)
    command = ["--qformat", "fp8_rowwise", "--no_quality_gate"]
    message = refusal(capsys, "quantize", str(model), "-o", str(tmp_path / "refused"), *command)
    assert "is quantized already" in message
    # What the new checkpoint leaves plain was quantized: its values are written.
    checkpoint = quantized(model, tmp_path / "checkpoint", *command, "--dequantize", "--exclude", "*.down_proj")
    down = load_file(checkpoint / "model.safetensors")["model.layers.0.mlp.down_proj.weight"]
    assert down.dtype == torch.bfloat16
    expected = transformers_logits(checkpoint, PROMPT, quantize_inputs=True)
    found = logits(compiled(checkpoint, tmp_path / "engine"))
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=2e-2)


def test_refusals(llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["-o", str(tmp_path / "checkpoint")]
    assert "name the format to quantize to" in refusal(capsys, "quantize", str(llama), *out, "--qformat", "none")
    message = refusal(capsys, "quantize", str(llama), *out, "--qformat", "int8_wo", "--max_shard_size", "0")
    assert "--max_shard_size 0.0: expected more than 0 (GB)" in message
    tied = save_model(tmp_path / "tied", "llama-tied", **SIZES)
    message = refusal(capsys, "quantize", str(tied), *out, "--qformat", "int8_wo", "--quantize_lm_head")
    assert "'model.embed_tokens.weight' is read by the embedding too" in message
    transposed = save_model(tmp_path / "gpt2", "gpt2")
    message = refusal(capsys, "quantize", str(transposed), *out, "--qformat", "int8_wo")
    assert "is stored as [in, out], for which compressed-tensors has no layout" in message
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("")
    message = refusal(capsys, "quantize", str(llama), "-o", str(tmp_path / "mine"), "--qformat", "int8_wo")
    assert "exists and is no engine: llmc does not overwrite it" in message
    bare = tiny_llama.save_config(tmp_path / "bare")
    assert "has no weights" in refusal(capsys, "quantize", str(bare), *out, "--qformat", "int8_wo")
    assert not (tmp_path / "checkpoint").exists()
