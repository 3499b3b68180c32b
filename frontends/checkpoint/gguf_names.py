"""How the tensors of a GGUF file map to those of the Hugging Face model.

llama.cpp's converter renames tensors and changes the values of a few; a `Family` undoes both. To add a family, list its
renames (GGUF prefix to Hugging Face prefix, `{n}` is the layer) and the values that its converter changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from transformers import PretrainedConfig


@dataclass(frozen=True)
class TensorSource:
    """Where a Hugging Face tensor comes from, and what undoes the converter's change of its values."""

    name: str
    row_order: Callable[[int], np.ndarray] | None = None  # rows of the stored tensor, in the order wanted
    offset: float = 0.0  # added to each value


@dataclass(frozen=True)
class Family:
    renames: dict[str, str]
    #: GGUF leaf name -> config attribute with the number of heads whose rotary halves the converter interleaved.
    interleaved: dict[str, str] = field(default_factory=dict)
    #: Norms are stored as 1 + w although the model adds the one itself.
    norms_plus_one: bool = False


_DENSE = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "blk.{n}.attn_norm": "model.layers.{n}.input_layernorm",
    "blk.{n}.attn_q": "model.layers.{n}.self_attn.q_proj",
    "blk.{n}.attn_k": "model.layers.{n}.self_attn.k_proj",
    "blk.{n}.attn_v": "model.layers.{n}.self_attn.v_proj",
    "blk.{n}.attn_output": "model.layers.{n}.self_attn.o_proj",
    "blk.{n}.ffn_norm": "model.layers.{n}.post_attention_layernorm",
    "blk.{n}.ffn_gate": "model.layers.{n}.mlp.gate_proj",
    "blk.{n}.ffn_up": "model.layers.{n}.mlp.up_proj",
    "blk.{n}.ffn_down": "model.layers.{n}.mlp.down_proj",
}
_QK_NORM = {
    "blk.{n}.attn_q_norm": "model.layers.{n}.self_attn.q_norm",
    "blk.{n}.attn_k_norm": "model.layers.{n}.self_attn.k_norm",
}
_SANDWICH_NORM = {
    "blk.{n}.post_attention_norm": "model.layers.{n}.post_attention_layernorm",
    "blk.{n}.ffn_norm": "model.layers.{n}.pre_feedforward_layernorm",
    "blk.{n}.post_ffw_norm": "model.layers.{n}.post_feedforward_layernorm",
}

FAMILIES = {
    "llama": Family(_DENSE, interleaved={"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}),
    "qwen2": Family(_DENSE),
    "qwen3": Family(_DENSE | _QK_NORM),
    "gemma2": Family(_DENSE | _SANDWICH_NORM, norms_plus_one=True),
    "gemma3": Family(_DENSE | _SANDWICH_NORM | _QK_NORM, norms_plus_one=True),
}

_LAYER = re.compile(r"\bblk\.(\d+)\.")


def map_tensors(family: Family, names: list[str], config: PretrainedConfig) -> dict[str, TensorSource]:
    """Hugging Face name -> source; a tensor that the family does not know keeps its GGUF name."""
    mapped = {}
    for name in names:
        stem, _, suffix = name.rpartition(".")
        layer = _LAYER.search(name)
        pattern = _LAYER.sub("blk.{n}.", stem)
        target = family.renames.get(pattern)
        if target is None or suffix not in ("weight", "bias"):
            mapped[name] = TensorSource(name)
            continue
        target = target.replace("{n}", layer[1]) if layer else target
        mapped[f"{target}.{suffix}"] = TensorSource(
            name,
            row_order=_row_order(family, pattern.rpartition(".")[2], config),
            offset=-1.0 if family.norms_plus_one and stem.endswith("norm") and suffix == "weight" else 0.0,
        )
    return mapped


def _row_order(family: Family, leaf: str, config: PretrainedConfig) -> Callable[[int], np.ndarray] | None:
    if leaf not in family.interleaved:
        return None
    heads = getattr(config, family.interleaved[leaf])
    return lambda rows: _halves_from_pairs(rows, heads)


def _halves_from_pairs(rows: int, heads: int) -> np.ndarray:
    """llama.cpp stores the rotary pairs of a head next to each other; Hugging Face keeps the two halves apart."""
    return np.arange(rows).reshape(heads, rows // heads // 2, 2).swapaxes(1, 2).reshape(-1)
