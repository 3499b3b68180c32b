"""A random Llama of two layers as a Hugging Face folder, with a tokenizer of single bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

VOCAB_SIZE = 260

_SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": VOCAB_SIZE,
    "max_position_embeddings": 256,
    "bos_token_id": 256,
    "eos_token_id": 257,
    "tie_word_embeddings": False,
}
_CHAT_TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant: "


def save_config(folder: Path, **changes: Any) -> Path:
    """config.json and tokenizer, no weights."""
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    config = transformers.LlamaConfig(**{**_SIZES, **changes})
    config.architectures = ["LlamaForCausalLM"]
    config.save_pretrained(folder)
    _save_tokenizer(folder)
    return folder


def save_model(folder: Path, seed: int = 0, dtype: str = "float32", **changes: Any) -> Path:
    """A whole checkpoint; the same seed gives the same bytes."""
    import torch
    import transformers

    save_config(folder, **changes)
    config = transformers.AutoConfig.from_pretrained(folder)
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            offset = 1.0 if "norm" in name else 0.0
            parameter.copy_(offset + 0.1 * torch.randn_like(parameter))
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    # So that a checkpoint and its configuration alone carry the same tokenizer files.
    (folder / "generation_config.json").unlink(missing_ok=True)
    return folder


def _save_tokenizer(folder: Path) -> None:
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = tokenizers.Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<s>", "</s>"])
    backend.save(str(folder / "tokenizer.json"))
    config = {"bos_token": "<s>", "eos_token": "</s>", "chat_template": _CHAT_TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
