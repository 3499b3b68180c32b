"""GGUF files written by the test: values, names, rope scaling, damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
import transformers
from gguf import GGMLQuantizationType as Type
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import dequantize, quantize
from support.frontend_models import random_model
from transformers.modeling_gguf_pytorch_utils import (
    TENSOR_PROCESSORS,
    TensorProcessor,
    get_gguf_hf_weights_map,
    load_gguf_checkpoint,
)

from llmc.frontends import Checkpoint, FrontendError, import_checkpoint, open_checkpoint

_QUANTIZABLE = (Type.F32, Type.F16, Type.BF16, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0)
_READ_ONLY = (Type.Q4_K, Type.Q5_K, Type.Q6_K)


def write(
    path: Path,
    tensors: dict[str, tuple[np.ndarray, Type]],
    architecture: str = "llama",
    fields: dict[str, Any] | None = None,
) -> Path:
    """A file with the metadata of the "llama" family; tensors come as stored blocks with their type."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("test")
    writer.add_block_count(2)
    writer.add_context_length(256)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(96)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(16)
    writer.add_key_length(16)
    writer.add_vocab_size(128)
    for key, value in (fields or {}).items():
        (writer.add_string if isinstance(value, str) else writer.add_float32)(key, value)
    for name, (data, kind) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def model_tensors(family: str, architecture: str) -> dict[str, tuple[np.ndarray, Type]]:
    """A random model's tensors under their GGUF names, as some file might store them."""
    model = random_model(family)
    processor = TENSOR_PROCESSORS.get(architecture, TensorProcessor)(config=model.config.to_dict())
    names = {hf: name for name, hf in get_gguf_hf_weights_map(model, processor).items()}
    state = {name: tensor.detach().numpy() for name, tensor in model.named_parameters()}
    return {names[name]: (array, Type.F32) for name, array in state.items()}


@pytest.mark.parametrize("kind", _QUANTIZABLE + _READ_ONLY, ids=lambda kind: kind.name)
def test_dequantizes_like_gguf(tmp_path: Path, kind: Type) -> None:
    generator = np.random.default_rng(0)
    values = generator.standard_normal((24, 256), dtype=np.float32)
    if kind in _READ_ONLY:
        block, size = GGML_QUANT_SIZES[kind]
        blocks = generator.integers(0, 64, (24, 256 // block * size), dtype=np.uint8)
    else:
        blocks = quantize(values, kind)
    checkpoint = open_checkpoint(write(tmp_path / "m.gguf", {"blk.0.ffn_up.weight": (blocks, kind)}))
    name = "model.layers.0.mlp.up_proj.weight"
    assert checkpoint.shape(name) == (24, 256)
    assert checkpoint.dtype(name) == kind.name.lower()
    expected = dequantize(blocks, kind)
    np.testing.assert_array_equal(checkpoint.read(name), expected)
    np.testing.assert_array_equal(checkpoint.read(name, slice(3, 11)), expected[3:11])


@pytest.mark.parametrize(
    ("family", "architecture"),
    [
        ("llama", "llama"),
        ("llama-tied", "llama"),
        ("qwen2", "qwen2"),
        ("qwen3", "qwen3"),
        ("gemma2", "gemma2"),
        ("gemma3", "gemma3"),
    ],
)
def test_weights_equal_those_of_transformers(tmp_path: Path, family: str, architecture: str) -> None:
    tensors = model_tensors(family, architecture)
    checkpoint = open_checkpoint(write(tmp_path / "m.gguf", tensors, architecture))
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(random_model(family).config)
    expected = load_gguf_checkpoint(checkpoint.path, return_tensors=True, model_to_load=model)["tensors"]
    assert checkpoint.names() == sorted(expected)
    for name, tensor in expected.items():
        np.testing.assert_array_equal(checkpoint.read(name), tensor.numpy(), err_msg=name)
        np.testing.assert_array_equal(checkpoint.read(name, slice(5, 40)), tensor.numpy()[5:40], err_msg=name)


def test_rotary_halves_are_put_back(tmp_path: Path) -> None:
    """What llama.cpp's converter does to queries and keys, written out here, is undone."""
    model = random_model("llama")
    tensors = model_tensors("llama", "llama")
    for leaf, heads in (("attn_q", 4), ("attn_k", 2)):
        weight, kind = tensors[f"blk.1.{leaf}.weight"]
        pairs = weight.reshape(heads, 2, weight.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)
        tensors[f"blk.1.{leaf}.weight"] = (np.ascontiguousarray(pairs), kind)
    checkpoint = open_checkpoint(write(tmp_path / "m.gguf", tensors))
    for leaf in ("q_proj", "k_proj"):
        name = f"model.layers.1.self_attn.{leaf}.weight"
        np.testing.assert_array_equal(checkpoint.read(name), dict(model.named_parameters())[name].detach().numpy())


def imported_inv_freq(checkpoint: Checkpoint) -> np.ndarray:
    for op in import_checkpoint(checkpoint.path).module.body.operations:
        if op.operation.name == "llm.parameter" and "inv_freq" in str(op.attributes["sym_name"]):
            return np.array(op.attributes["value"])
    raise AssertionError("no rope frequencies")


def test_llama3_factors_divide_the_frequencies(tmp_path: Path) -> None:
    factors = np.linspace(1, 8, 8, dtype=np.float32)
    plain = model_tensors("llama", "llama")
    scaled = {**plain, "rope_freqs.weight": (factors, Type.F32)}
    base = imported_inv_freq(open_checkpoint(write(tmp_path / "plain.gguf", plain)))
    inv_freq = imported_inv_freq(open_checkpoint(write(tmp_path / "scaled.gguf", scaled)))
    np.testing.assert_allclose(inv_freq, base / factors, rtol=1e-6)


def test_rope_scaling_of_the_metadata_is_kept(tmp_path: Path) -> None:
    plain = model_tensors("llama", "llama")
    fields = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
    base = imported_inv_freq(open_checkpoint(write(tmp_path / "plain.gguf", plain)))
    inv_freq = imported_inv_freq(open_checkpoint(write(tmp_path / "scaled.gguf", plain, fields=fields)))
    np.testing.assert_allclose(inv_freq, base / 4, rtol=1e-6)


def test_unknown_rope_scaling(tmp_path: Path) -> None:
    fields = {"llama.rope.scaling.type": "spiral", "llama.rope.scaling.factor": 4.0}
    path = write(tmp_path / "m.gguf", model_tensors("llama", "llama"), fields=fields)
    with pytest.raises(FrontendError, match="unknown rope type 'spiral'"):
        import_checkpoint(path)


def test_unknown_architecture(tmp_path: Path) -> None:
    with pytest.raises(FrontendError, match=r"unknown architecture 'rwkv6'.*are read: gemma2"):
        open_checkpoint(write(tmp_path / "m.gguf", {}, architecture="rwkv6"))


def test_unknown_tensor_keeps_its_name_and_is_refused(tmp_path: Path) -> None:
    tensors = {**model_tensors("llama", "llama"), "blk.0.mystery.weight": (np.zeros((2, 2), np.float32), Type.F32)}
    with pytest.raises(FrontendError, match=r"does not use.*\n  blk\.0\.mystery\.weight"):
        import_checkpoint(write(tmp_path / "m.gguf", tensors))


@pytest.mark.parametrize(
    ("cut", "message"),
    [(10, "only 10 bytes long"), (200, "truncated inside its header"), (-1000, "truncated: tensor '.*' ends at byte")],
)
def test_truncated_file(tmp_path: Path, cut: int, message: str) -> None:
    path = write(tmp_path / "m.gguf", model_tensors("llama", "llama"))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(FrontendError, match=f"damaged weight file .*{message}"):
        open_checkpoint(path)


def test_file_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"PK" + bytes(100))
    with pytest.raises(FrontendError, match="does not start with 'GGUF'"):
        open_checkpoint(path)
