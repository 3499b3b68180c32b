"""The Hugging Face module on the meta device, and the small constants that it computes itself."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import transformers

from llmc.errors import first_line
from llmc.frontends.errors import FrontendError
from llmc.frontends.huggingface import attention, rope

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel


_NO_INTERFACE = "unknown architecture: {} models of transformers do not take their attention from outside"


def build_model(
    config: PretrainedConfig, max_seq_len: int | None = None
) -> tuple[PreTrainedModel, dict[str, np.ndarray]]:
    """The causal language model of `config` without storage, and its constant buffers by name."""
    attention.register()
    config = copy.deepcopy(config)
    if type(config) not in transformers.MODEL_FOR_CAUSAL_LM_MAPPING:
        raise FrontendError(f"unknown architecture: '{config.model_type}' has no causal language model")
    try:
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(
                config, dtype=torch.float32, attn_implementation=attention.IMPLEMENTATION, trust_remote_code=False
            )
    except KeyError as error:
        if error.args == (attention.IMPLEMENTATION,):
            raise FrontendError(_NO_INTERFACE.format(config.model_type)) from None
        raise FrontendError(f"cannot build a {config.model_type} model from its config: no entry {error}") from None
    except (ValueError, TypeError, AttributeError, ImportError, RuntimeError, ArithmeticError) as error:
        reason = first_line(error)
        raise FrontendError(f"cannot build a {config.model_type} model from its config: {reason}") from None
    _refuse_experts(model)
    model.eval()
    model.requires_grad_(False)
    buffers = _constant_buffers(model)
    rope.freeze(model, config, max_seq_len)
    return model, buffers


def _refuse_experts(model: torch.nn.Module) -> None:
    for name, module in model.named_modules():
        if hasattr(module, "_apply_gate"):  # what transformers gives every class of experts
            raise FrontendError(f"mixture of experts ({type(module).__name__} at {name}) is not supported yet")


def _constant_buffers(model: torch.nn.Module) -> dict[str, np.ndarray]:
    """Values of the buffers that no checkpoint stores (rotary frequencies), as the model's own initialiser sets them.

    Buffers on the meta device have no values; so a shallow copy of each owning module gets CPU buffers and is
    initialised again. A buffer that the initialiser leaves alone is absent from the result.
    """
    values = {}
    for prefix, module in model.named_modules():
        names = [
            name
            for name in module._non_persistent_buffers_set
            if module._buffers.get(name) is not None and module._buffers[name].is_floating_point()
        ]
        if not names:
            continue
        shadow = copy.copy(module)
        shadow._buffers = dict(module._buffers)
        for name in names:
            shadow._buffers[name] = torch.full_like(module._buffers[name], float("nan"), device="cpu")
        initialize: Any = model._init_weights
        with torch.no_grad():
            initialize(shadow)
        for name in names:
            value = shadow._buffers[name]
            if not value.is_meta and not value.isnan().any():
                values[f"{prefix}.{name}" if prefix else name] = value.float().numpy()
    return values


class DecoderStep(torch.nn.Module):
    """What is exported: token and position ids of one sequence to logits, without a cache."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        # An all-ones padding mask keeps transformers from looking for packed sequences in the positions.
        padding = torch.ones_like(input_ids, dtype=torch.bool)
        return self.model(
            input_ids=input_ids, position_ids=position_ids, attention_mask=padding, use_cache=False
        ).logits
