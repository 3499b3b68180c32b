"""Small random models of every family, as Hugging Face folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

_SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
    "max_position_embeddings": 256,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_GPT_SIZES: dict[str, Any] = {
    "n_embd": 64,
    "n_layer": 2,
    "n_head": 4,
    "vocab_size": 128,
    "n_positions": 256,
    "bos_token_id": 1,
    "eos_token_id": 2,
}

#: Name -> config class and its arguments. The model type is the name up to the first "-".
FAMILIES: dict[str, tuple[type, dict[str, Any]]] = {
    "llama": (transformers.LlamaConfig, _SIZES),
    "llama-tied": (transformers.LlamaConfig, {**_SIZES, "tie_word_embeddings": True}),
    "llama-mha": (transformers.LlamaConfig, {**_SIZES, "num_key_value_heads": 4, "head_dim": 32}),
    "llama-bias": (transformers.LlamaConfig, {**_SIZES, "attention_bias": True, "mlp_bias": True}),
    "llama-linear": (
        transformers.LlamaConfig,
        {**_SIZES, "rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}},
    ),
    "llama-llama3": (
        transformers.LlamaConfig,
        {
            **_SIZES,
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 500000.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            },
        },
    ),
    "llama-yarn": (
        transformers.LlamaConfig,
        {
            **_SIZES,
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 10000.0,
                "factor": 4.0,
                "original_max_position_embeddings": 64,
            },
        },
    ),
    "mistral": (transformers.MistralConfig, {**_SIZES, "sliding_window": 5, "head_dim": 16}),
    "qwen2": (transformers.Qwen2Config, _SIZES),
    "qwen3": (transformers.Qwen3Config, {**_SIZES, "head_dim": 16}),
    "gemma": (transformers.GemmaConfig, {**_SIZES, "head_dim": 16}),
    "gemma2": (transformers.Gemma2Config, {**_SIZES, "head_dim": 16, "sliding_window": 5}),
    "gemma3": (
        transformers.Gemma3TextConfig,
        {**_SIZES, "head_dim": 16, "sliding_window": 5, "num_hidden_layers": 7},
    ),
    "phi": (transformers.PhiConfig, _SIZES),
    "phi3": (transformers.Phi3Config, _SIZES),
    "gpt2": (transformers.GPT2Config, _GPT_SIZES),
    "gptj": (transformers.GPTJConfig, {**_GPT_SIZES, "rotary_dim": 8}),
    "gpt_neox": (transformers.GPTNeoXConfig, _SIZES),
    "opt": (
        transformers.OPTConfig,
        {
            "hidden_size": 64,
            "ffn_dim": 96,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "vocab_size": 128,
            "max_position_embeddings": 256,
            "word_embed_proj_dim": 64,
        },
    ),
    "starcoder2": (transformers.Starcoder2Config, _SIZES),
    "olmo": (transformers.OlmoConfig, _SIZES),
    "olmo2": (transformers.Olmo2Config, _SIZES),
    "granite": (
        transformers.GraniteConfig,
        {
            **_SIZES,
            "embedding_multiplier": 2.0,
            "residual_multiplier": 0.5,
            "attention_multiplier": 0.3,
            "logits_scaling": 4.0,
        },
    ),
    "stablelm": (transformers.StableLmConfig, _SIZES),
    "cohere": (transformers.CohereConfig, _SIZES),
    "cohere2": (transformers.Cohere2Config, {**_SIZES, "sliding_window": 5}),
    "smollm3": (transformers.SmolLM3Config, _SIZES),
    "glm4": (transformers.Glm4Config, {**_SIZES, "head_dim": 16}),
}


def config_of(family: str, **changes: Any) -> transformers.PretrainedConfig:
    config_class, arguments = FAMILIES[family]
    config = config_class(**{**arguments, **changes})
    config.architectures = [transformers.MODEL_FOR_CAUSAL_LM_MAPPING[config_class].__name__]
    return config


def save_config(folder: Path, family: str, **changes: Any) -> Path:
    """A folder with a configuration and no weights."""
    folder.mkdir(parents=True, exist_ok=True)
    config_of(family, **changes).save_pretrained(folder)
    return folder


def random_model(family: str, seed: int = 0, **changes: Any) -> Any:
    """A float32 model whose every parameter is random, norms and biases included."""
    torch.manual_seed(seed)
    config = config_of(family, **changes)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            scale = 0.3 if parameter.ndim == 1 else parameter.shape[-1] ** -0.5
            offset = 1.0 if name.endswith("norm.weight") else 0.0
            parameter.copy_(offset + scale * torch.randn_like(parameter))
    return model.eval()


def save_model(folder: Path, family: str, max_shard_size: str = "5GB", **changes: Any) -> Path:
    """A folder with configuration and safetensors."""
    random_model(family, **changes).save_pretrained(folder, max_shard_size=max_shard_size)
    return folder
