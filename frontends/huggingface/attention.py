"""Routes the attention of every Hugging Face model through one operator.

transformers lets a library register its own attention and mask functions. Ours call `llmc::attention` and `llmc::mask`,
which exist only to be traced: the exported graph then has one attention node a layer and no mask arithmetic. The mask
function does not trust what a model says about its mask; it evaluates the mask on sample positions and accepts exactly
the masks that `llm.attention` can express.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from transformers import AttentionInterface, AttentionMaskInterface

from llmc.frontends.errors import FrontendError

if TYPE_CHECKING:
    from transformers import PretrainedConfig

#: The name under which transformers knows our functions.
IMPLEMENTATION = "llmc"

#: Window of a mask that is causal and nothing else.
NO_WINDOW = 0

#: Keyword arguments of attention functions that do not change the result of one causal sequence.
_NEUTRAL_ARGUMENTS = frozenset(
    {
        "dropout",
        "is_causal",
        "position_ids",
        "use_cache",
        "cache",
        "cache_position",
        "past_key_values",
        "output_attentions",
        "output_hidden_states",
        "output_router_logits",
        "return_dict",
        "logits_to_keep",
        "training",
        "sliding_window",  # the mask says it, see _window_of
        "position_embeddings",
        "head_mask",
    }
)


@torch.library.custom_op("llmc::attention", mutates_args=())
def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor,
    sinks: torch.Tensor | None,
    scale: float,
    softcap: float,
) -> torch.Tensor:
    """[1, Hq, T, D], [1, Hkv, T, D], [1, Hkv, T, Dv] -> [1, T, Hq, Dv]; a softcap of 0 is none."""
    raise NotImplementedError("llmc::attention is traced, never run")


@_attention.register_fake
def _(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor,
    sinks: torch.Tensor | None,
    scale: float,
    softcap: float,
) -> torch.Tensor:
    return query.new_empty(query.shape[0], query.shape[2], query.shape[1], value.shape[3])


@torch.library.custom_op("llmc::mask", mutates_args=())
def _mask(like: torch.Tensor, window: int) -> torch.Tensor:
    """A token for the causal mask with the given window; the attention it reaches reads the window off it."""
    raise NotImplementedError("llmc::mask is traced, never run")


@_mask.register_fake
def _(like: torch.Tensor, window: int) -> torch.Tensor:
    return like.new_empty((1, 1, 1, 1), dtype=torch.bool)


def _attention_forward(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    unknown = sorted(
        name for name, argument in others.items() if argument is not None and name not in _NEUTRAL_ARGUMENTS
    )
    if unknown:
        raise FrontendError(f"{type(module).__name__} passes attention arguments unknown to llmc: {', '.join(unknown)}")
    if attention_mask is None:
        raise FrontendError(f"{type(module).__name__} runs attention without a mask: only causal decoders are compiled")
    scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
    output = torch.ops.llmc.attention(query, key, value, attention_mask, s_aux, scale, float(softcap or 0.0))
    return output, None


def _mask_token(
    *, mask_function: Callable[..., Any], attention_mask: torch.Tensor, config: PretrainedConfig, **_: Any
) -> torch.Tensor:
    return torch.ops.llmc.mask(attention_mask, _window_of(mask_function, _candidate_windows(config)))


def _candidate_windows(config: PretrainedConfig) -> list[int]:
    sizes = [getattr(config, name, None) for name in ("sliding_window", "attention_chunk_size")]
    return sorted({size for size in sizes if isinstance(size, int) and size > 0})


def _window_of(mask_function: Callable[..., Any], candidates: list[int]) -> int:
    """The window of a causal mask, found by evaluating it around every place where it could change."""
    edges = {0, 1, 2, 3, 7, 64, 1000}
    for size in candidates:
        edges |= {size - 1, size, size + 1, 2 * size - 1, 2 * size, 2 * size + 1, 3 * size + 5}
    with unset_fake_temporarily(), disable_proxy_modes_tracing(), torch.device("cpu"):
        positions = torch.tensor(sorted(edge for edge in edges if edge >= 0))
        query, key = positions[:, None], positions[None, :]
        zero = torch.zeros((), dtype=torch.long)
        seen = torch.as_tensor(mask_function(zero, zero, query, key)).expand(len(positions), len(positions))
        for window in [NO_WINDOW, *candidates]:
            expected = key <= query
            if window != NO_WINDOW:
                expected = expected & (key > query - window)
            if torch.equal(seen.bool(), expected):
                return window
    raise FrontendError("the model's attention mask is neither causal nor causal with a sliding window")


def register() -> None:
    """Makes transformers know the implementation; harmless to repeat."""
    AttentionInterface.register(IMPLEMENTATION, _attention_forward)
    AttentionMaskInterface.register(IMPLEMENTATION, _mask_token)
