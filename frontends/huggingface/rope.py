"""Which rotary position embeddings can be compiled.

Every type whose frequencies do not depend on the running length is a table that the frontend computes from the
configuration. `dynamic` and `longrope` change their frequencies with the length; they are static only when the engine
never grows past the length at which they switch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llmc.frontends.errors import FrontendError

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig

STATIC_TYPES = ("default", "linear", "llama3", "proportional", "yarn")
LENGTH_DEPENDENT_TYPES = ("dynamic", "longrope")


def rope_types(parameters: Any) -> set[str]:
    """The rope types that a `rope_parameters` or legacy `rope_scaling` entry names, one or one per layer type."""
    if not isinstance(parameters, dict):
        return set()
    nested = [value for value in parameters.values() if isinstance(value, dict)]
    if nested:
        return set().union(*map(rope_types, nested))
    return {str(parameters.get("rope_type", parameters.get("type", "default")))}


def check_types(parameters: Any) -> None:
    """Refuses types that llmc does not know."""
    for name in sorted(rope_types(parameters)):
        if name not in STATIC_TYPES + LENGTH_DEPENDENT_TYPES:
            raise FrontendError(f"unknown rope type '{name}'; known are {', '.join(STATIC_TYPES)}")


def freeze(model: torch.nn.Module, config: PretrainedConfig, max_seq_len: int | None) -> None:
    """Turns length-dependent rotary modules of `model` into static ones, or refuses."""
    for name in sorted(rope_types(getattr(config, "rope_parameters", None)) & set(LENGTH_DEPENDENT_TYPES)):
        limit = _static_limit(name, config)
        if max_seq_len is None or max_seq_len > limit:
            raise FrontendError(
                f"rope type '{name}' changes its frequencies beyond {limit} tokens, "
                f"which a compiled table cannot; compile with max_seq_len <= {limit}"
            )
    rotary: Any
    for rotary in model.modules():
        if getattr(rotary, "rope_type", None) in LENGTH_DEPENDENT_TYPES:
            # The buffers hold the table for short sequences; this turns only its update during forward off.
            rotary.rope_type = "default"


def _static_limit(name: str, config: PretrainedConfig) -> int:
    if name == "longrope":
        original = config.rope_parameters.get("original_max_position_embeddings")
        return original or config.max_position_embeddings
    return config.max_position_embeddings
