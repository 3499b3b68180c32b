"""Wrong input through the command line, on real files: one message, exit code 2, nothing left behind.

The list is that of a user's mistakes; what each part refuses in detail is tested where that part is.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import safetensors.torch
import torch
from support import tiny_llama

from llmc.compiler.cli import main


@pytest.fixture(scope="module")
def good_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_llama.save_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def model(good_model: Path, tmp_path: Path) -> Path:
    return shutil.copytree(good_model, tmp_path / "model")


@pytest.fixture(scope="module")
def good_engine(good_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    engine = tmp_path_factory.mktemp("engines") / "engine"
    assert main(["compile", str(good_model), "-o", str(engine), "--quiet", "--no_cache"]) == 0
    return engine


@pytest.fixture
def engine(good_engine: Path, tmp_path: Path) -> Path:
    return shutil.copytree(good_engine, tmp_path / "engine")


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., None]:
    """Runs `llmc` and looks at what a user sees."""

    def check(arguments: list[str | Path], *parts: str) -> None:
        assert main([str(argument) for argument in arguments]) == 2
        error = capsys.readouterr().err
        assert error.startswith("llmc: error: "), error
        assert "Traceback" not in error
        for part in parts:
            assert part in error

    return check


def edit_config(model: Path, **changes: object) -> None:
    path = model / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def edit_tensors(model: Path, edit: Callable[[dict[str, torch.Tensor]], object]) -> None:
    path = model / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    edit(tensors)
    safetensors.torch.save_file(tensors, path)


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def truncate_weights(model: Path) -> None:
    cut(model / "model.safetensors", (model / "model.safetensors").stat().st_size - 1000)


Q0 = "model.layers.0.self_attn.q_proj.weight"
Q1 = "model.layers.1.self_attn.q_proj.weight"
BAD_MODELS: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "unknown architecture": (
        lambda m: edit_config(m, model_type="wonder", architectures=["WonderForCausalLM"]),
        ["wonder"],
    ),
    "config.json is no JSON": (lambda m: (m / "config.json").write_text("{"), ["config.json"]),
    "config.json is a list": (lambda m: (m / "config.json").write_text("[]"), ["config.json"]),
    "no config.json": (lambda m: (m / "config.json").unlink(), ["config.json"]),
    "no weights": (lambda m: (m / "model.safetensors").unlink(), ["model"]),
    "truncated weights": (truncate_weights, ["model.safetensors", "bytes"]),
    "empty weights": (lambda m: cut(m / "model.safetensors", 0), ["model.safetensors"]),
    "weights of another format": (
        lambda m: (m / "model.safetensors").write_bytes(b"PK\x03\x04" * 99),
        ["model.safetensors"],
    ),
    "missing tensors": (lambda m: edit_tensors(m, lambda t: (t.pop(Q0), t.pop(Q1))), [Q0, Q1]),
    "tensors that nobody uses": (
        lambda m: edit_tensors(m, lambda t: t.update({"model.extra.weight": torch.zeros(3)})),
        ["model.extra.weight"],
    ),
    "wrong shape": (
        lambda m: edit_tensors(m, lambda t: t.update({Q0: torch.zeros(64, 32)})),
        [Q0, "64, 64", "64, 32"],
    ),
    "wrong dtype": (
        lambda m: edit_tensors(m, lambda t: t.update({Q0: torch.zeros(64, 64, dtype=torch.int8)})),
        [Q0, "i8"],
    ),
    "config that contradicts the weights": (lambda m: edit_config(m, intermediate_size=128), ["mlp", "128", "96"]),
    "more layers than weights": (lambda m: edit_config(m, num_hidden_layers=3), ["model.layers.2."]),
    "heads that do not divide": (lambda m: edit_config(m, num_key_value_heads=3), ["3"]),
    "a size that is text": (lambda m: edit_config(m, hidden_size="big"), ["hidden_size"]),
    "no heads": (lambda m: edit_config(m, num_attention_heads=0), ["config.json"]),
    "a dtype that is a number": (lambda m: edit_config(m, dtype=1e30), ["config.json"]),
    "no key heads": (lambda m: edit_config(m, num_key_value_heads=0), ["llama"]),
    "architectures that are no list": (lambda m: edit_config(m, architectures=3), ["architectures", "3"]),
    "negative size": (lambda m: edit_config(m, hidden_size=-64), ["-64"]),
    "unknown activation": (lambda m: edit_config(m, hidden_act="wobble"), ["wobble"]),
    "unknown rope type": (lambda m: edit_config(m, rope_parameters={"rope_type": "spiral"}), ["spiral"]),
    "rope without its factor": (lambda m: edit_config(m, rope_parameters={"rope_type": "linear"}), ["factor"]),
}


@pytest.mark.parametrize(("spoil", "parts"), BAD_MODELS.values(), ids=BAD_MODELS.keys())
def test_model(model, tmp_path, refused, spoil, parts):
    spoil(model)
    refused(["compile", model, "-o", tmp_path / "out", "--quiet"], *parts)
    assert not (tmp_path / "out").exists()


def write_gguf(path: Path) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("token_embd.weight", np.zeros((8, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


BAD_GGUF: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "empty": (lambda p: cut(p, 0), []),
    "cut in the header": (lambda p: cut(p, 20), []),
    "cut in the data": (lambda p: cut(p, p.stat().st_size - 64), []),
    "another format": (lambda p: p.write_bytes(b"\x7fELF" + bytes(4000)), ["GGUF"]),
    "version 99": (lambda p: p.write_bytes(b"GGUF" + bytes([99, 0, 0, 0]) + p.read_bytes()[8:]), ["version"]),
    "a count beyond the file": (lambda p: p.write_bytes(p.read_bytes()[:8] + b"\xff" * 16), []),
    "no configuration": (lambda p: None, ["llama."]),
}


@pytest.mark.parametrize(("spoil", "parts"), BAD_GGUF.values(), ids=BAD_GGUF.keys())
def test_gguf(tmp_path, refused, spoil, parts):
    spoil(path := write_gguf(tmp_path / "model.gguf"))
    refused(["compile", path, "-o", tmp_path / "out", "--quiet"], "model.gguf", *parts)
    assert not (tmp_path / "out").exists()


def edit_manifest(engine: Path, edit: Callable[[dict], object]) -> None:
    path = engine / "manifest.json"
    manifest = json.loads(path.read_text())
    edit(manifest)
    path.write_text(json.dumps(manifest))


def flip_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def strip(engine: Path) -> None:
    (engine / "weights.safetensors").unlink()
    edit_manifest(engine, lambda m: m["weights"].update(bound=False))


BAD_ENGINES: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "for another CPU": (
        lambda e: edit_manifest(e, lambda m: m["target"].update(arch="aarch64", features=["sve"])),
        ["aarch64"],
    ),
    "for a CPU with more": (
        lambda e: edit_manifest(e, lambda m: m["target"]["features"].append("amx-fp16")),
        ["amx-fp16"],
    ),
    "for a GPU": (
        lambda e: edit_manifest(e, lambda m: m.update(target={"name": "sm_90", "arch": "sm_90a", "features": []})),
        [],
    ),
    "of a later format": (lambda e: edit_manifest(e, lambda m: m.update(format_version=99)), ["99"]),
    "stripped": (strip, ["llmc refit"]),
    "without its manifest": (lambda e: (e / "manifest.json").unlink(), ["manifest.json"]),
    "manifest is no JSON": (lambda e: cut(e / "manifest.json", 100), ["manifest.json"]),
    "without its plan": (lambda e: (e / "plan.json").unlink(), ["plan.json"]),
    "a damaged plan": (lambda e: flip_byte(e / "plan.json"), ["plan.json"]),
    "damaged code": (lambda e: flip_byte(e / "kernels" / "host.so"), ["kernels/host.so"]),
    "damaged weights": (lambda e: flip_byte(e / "weights.safetensors"), ["sha256"]),
    "truncated weights": (lambda e: cut(e / "weights.safetensors", 5000), ["weights.safetensors"]),
}


@pytest.mark.parametrize(("spoil", "parts"), BAD_ENGINES.values(), ids=BAD_ENGINES.keys())
def test_engine(engine, refused, spoil, parts):
    spoil(engine)
    refused(["run", engine, "Hello"], *parts)


@pytest.mark.parametrize("command", ["run", "chat", "inspect"])
def test_no_engine(tmp_path, refused, command):
    refused([command, tmp_path / "nowhere", *(["Hello"] if command == "run" else [])], "nowhere")


def test_prompt_that_is_too_long(engine, refused):
    refused(["run", engine, "x" * 300], "300", "256")


def test_unknown_target(model, tmp_path, refused):
    refused(["compile", model, "-o", tmp_path / "out", "--target", "sm_75"], "sm_75", "sm_90")
    assert not (tmp_path / "out").exists()


def test_limits_beyond_the_model(model, tmp_path, refused):
    refused(["compile", model, "-o", tmp_path / "out", "--max_seq_len", "100000", "--quiet"], "100000", "256")
