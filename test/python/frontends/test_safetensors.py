"""Hugging Face folders: reading, sharding, and what is wrong with damaged ones."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from support.frontend_models import save_config, save_model

from llmc.frontends import FrontendError, open_checkpoint


def folder_with(path: Path, tensors: dict[str, torch.Tensor]) -> Path:
    save_config(path, "llama")
    save_file(tensors, path / "model.safetensors")
    return path


@pytest.mark.parametrize(
    ("dtype", "name"), [(torch.float32, "f32"), (torch.float16, "f16"), (torch.bfloat16, "bf16"), (torch.int8, "i8")]
)
def test_reads_every_storage_type(tmp_path: Path, dtype: torch.dtype, name: str) -> None:
    values = (torch.randn(6, 4) * 10).to(dtype)
    checkpoint = open_checkpoint(folder_with(tmp_path, {"a": values}))
    assert checkpoint.names() == ["a"]
    assert checkpoint.shape("a") == (6, 4)
    assert checkpoint.dtype("a") == name
    np.testing.assert_array_equal(checkpoint.read("a").astype(np.float32), values.float().numpy())
    np.testing.assert_array_equal(checkpoint.read("a", slice(2, 5)).astype(np.float32), values[2:5].float().numpy())


def test_reading_does_not_copy(tmp_path: Path) -> None:
    array = open_checkpoint(folder_with(tmp_path, {"a": torch.randn(6, 4)})).read("a")
    assert not array.flags.owndata
    assert not array.flags.writeable


def test_shards_read_as_one_checkpoint(tmp_path: Path) -> None:
    whole = open_checkpoint(save_model(tmp_path / "whole", "llama"))
    shards = open_checkpoint(save_model(tmp_path / "shards", "llama", max_shard_size="50KB"))
    assert len(shards.files()) > 2
    assert shards.names() == whole.names()
    for name in whole.names():
        np.testing.assert_array_equal(shards.read(name), whole.read(name))


def test_config_only_folder_has_no_weights(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(save_config(tmp_path, "llama"))
    assert not checkpoint.has_weights
    assert checkpoint.names() == []
    assert checkpoint.identity()["architecture"] == "LlamaForCausalLM"


def test_truncated_file(tmp_path: Path) -> None:
    file = save_model(tmp_path, "llama") / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(FrontendError, match=r"damaged weight file .*model\.safetensors: truncated: needs \d+ bytes"):
        open_checkpoint(tmp_path).names()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "only 0 bytes long"),
        (struct.pack("<Q", 1 << 40) + b"{}", "the header claims"),
        (struct.pack("<Q", 4) + b"abcd", "unreadable header"),
        (struct.pack("<Q", 10) + b'{"a": [1]}', "unreadable header"),
    ],
)
def test_damaged_header(tmp_path: Path, content: bytes, message: str) -> None:
    save_config(tmp_path, "llama")
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(FrontendError, match=message):
        open_checkpoint(tmp_path).names()


def test_bytes_that_contradict_the_shape(tmp_path: Path) -> None:
    save_config(tmp_path, "llama")
    header = json.dumps({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    with pytest.raises(FrontendError, match=r"tensor 'a' of shape \[3\] and dtype f32 holds 8 bytes"):
        open_checkpoint(tmp_path).names()


def test_shard_that_is_missing(tmp_path: Path) -> None:
    save_model(tmp_path, "llama", max_shard_size="50KB")
    shard = sorted(tmp_path.glob("model-*.safetensors"))[1]
    shard.unlink()
    with pytest.raises(FrontendError, match=rf"missing weight files in .*\n  {shard.name}"):
        open_checkpoint(tmp_path).names()


def test_index_that_names_an_absent_tensor(tmp_path: Path) -> None:
    save_model(tmp_path, "llama", max_shard_size="50KB")
    index = tmp_path / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    content["weight_map"]["model.extra"] = next(iter(content["weight_map"].values()))
    index.write_text(json.dumps(content))
    with pytest.raises(FrontendError, match=r"names tensors that their files lack:\n  model\.extra"):
        open_checkpoint(tmp_path).names()


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    save_config(tmp_path, "llama")
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(FrontendError, match="convert them to safetensors"):
        open_checkpoint(tmp_path).names()


def test_paths_that_hold_no_model(tmp_path: Path) -> None:
    with pytest.raises(FrontendError, match="no model at"):
        open_checkpoint(tmp_path / "absent")
    with pytest.raises(FrontendError, match=r"has no config\.json and no \.gguf file"):
        open_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(FrontendError, match="unreadable"):
        open_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(FrontendError, match="names no model_type"):
        open_checkpoint(tmp_path)
