"""Import of SmolLM2-135M-Instruct from its .gguf file (tools/smollm2.py)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from llmc.frontends import import_checkpoint, open_checkpoint


@pytest.mark.slow
def test_imports(smollm2: Path) -> None:
    imported = import_checkpoint(smollm2)
    assert len(imported.tensors) == 272
    assert imported.identity["architecture"] == "LlamaForCausalLM"
    assert imported.identity["tie_word_embeddings"] is True


@pytest.mark.slow
def test_weights_equal_those_of_transformers(smollm2: Path) -> None:
    checkpoint = open_checkpoint(smollm2)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(checkpoint.config)
    expected = load_gguf_checkpoint(smollm2, return_tensors=True, model_to_load=model)["tensors"]
    assert checkpoint.names() == sorted(expected)
    for name, tensor in expected.items():
        np.testing.assert_array_equal(checkpoint.read(name), tensor.numpy(), err_msg=name)


@pytest.mark.slow
def test_tokenizer(smollm2: Path, tmp_path: Path) -> None:
    files = open_checkpoint(smollm2).export_tokenizer(tmp_path)
    assert files == ["chat_template.jinja", "generation_config.json", "tokenizer.json", "tokenizer_config.json"]
    assert json.loads((tmp_path / "generation_config.json").read_text())["eos_token_id"] == 2
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    text = "The capital of France is Paris. Ça va? 你好"
    assert tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"]) == text
    prompt = tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)
    assert "<|im_start|>user\nHi<|im_end|>" in prompt
