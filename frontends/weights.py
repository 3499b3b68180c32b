"""Binds the parameters of a model to the tensors of its checkpoint, and checks that they fit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from llmc.errors import bulleted
from llmc.frontends.checkpoint import Checkpoint
from llmc.frontends.errors import FrontendError
from llmc.frontends.huggingface import renames
from llmc.frontends.parameter_source import ParameterSource

if TYPE_CHECKING:
    from transformers import PreTrainedModel

#: Tensors that old checkpoints store although the model computes them itself.
_IGNORABLE = re.compile(r"(rotary_emb|rotary_pos_emb)\.inv_freq$|(attn|attention)\.(masked_)?bias$")

_WEIGHT_DTYPES = re.compile(r"f64|f32|f16|bf16|i?q\d.*|tq\d.*|mxfp4")


@dataclass(frozen=True)
class Binding:
    #: The source of every parameter and buffer, by module name.
    sources: dict[str, ParameterSource]
    #: Tensors of the checkpoint that are known not to matter.
    ignored: list[str]


def bind(model: PreTrainedModel, buffers: dict[str, np.ndarray], checkpoint: Checkpoint) -> Binding:
    """Finds the source of every parameter and buffer of `model`.

    Raises when a tensor is missing, left over, or of another shape or kind than the model's parameter.
    """
    declared = _stored_tensors(model)
    canonical = _canonical_names(declared)
    owners = sorted(set(canonical.values()))
    stored = _stored_names(model, owners, checkpoint)
    ignored = _ignorable(model, set(checkpoint.names()) - set(stored.values()))
    if checkpoint.has_weights:
        _check_missing(owners, stored, checkpoint)
        _check_left_over(ignored, stored, canonical, checkpoint)
        for name in owners:
            _check_tensor(name, declared[name], stored[name], checkpoint)
    sources = {name: ParameterSource(owner, tensor=stored[owner]) for name, owner in canonical.items()}
    divisors = checkpoint.buffer_divisors()
    for name, value in buffers.items():
        divisor = divisors.get(name.rpartition(".")[2])
        sources[name] = ParameterSource(name, value=value if divisor is None else value / divisor)
    return Binding(sources, sorted(ignored))


def _stored_tensors(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """What a checkpoint stores. Not `state_dict`: its detached copies do not show which tensors are the same."""
    stored = model.state_dict().keys()
    tensors = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    return {name: tensor for name, tensor in tensors if name in stored}


def _canonical_names(declared: dict[str, torch.Tensor]) -> dict[str, str]:
    """Each parameter name, and the first name of the same tensor: tied embeddings are one parameter."""
    first: dict[int, str] = {}
    return {name: first.setdefault(id(tensor), name) for name, tensor in declared.items()}


def _stored_names(model: PreTrainedModel, owners: list[str], checkpoint: Checkpoint) -> dict[str, str]:
    """Module name -> checkpoint name, for the tensors that the checkpoint has; for all, if it has no weights."""
    if not checkpoint.has_weights:
        return renames.to_checkpoint(model, owners)
    available = renames.to_module(model, checkpoint.names())
    # Checkpoints of the bare base model lack its prefix, and the other way round.
    prefix = model.base_model_prefix
    found = {}
    for name in owners:
        for candidate in (name, name.removeprefix(f"{prefix}."), f"{prefix}.{name}"):
            if candidate in available:
                found[name] = available[candidate]
                break
    return found


def _check_missing(owners: list[str], stored: dict[str, str], checkpoint: Checkpoint) -> None:
    missing = [name for name in owners if name not in stored]
    if not missing:
        return
    hint = ""
    if missing == ["lm_head.weight"]:
        hint = "\nthe config says tie_word_embeddings = false; set it to true if the embedding is meant to be shared"
    raise FrontendError(f"{checkpoint.path} lacks {len(missing)} tensors of the model:\n{bulleted(missing)}{hint}")


def _ignorable(model: PreTrainedModel, names: set[str]) -> set[str]:
    patterns = [_IGNORABLE, *map(re.compile, getattr(model, "_keys_to_ignore_on_load_unexpected", None) or ())]
    return {name for name in names if any(pattern.search(name) for pattern in patterns)}


def _check_left_over(
    ignored: set[str], stored: dict[str, str], canonical: dict[str, str], checkpoint: Checkpoint
) -> None:
    """Refuses tensors without a use; equal copies of tied tensors join `ignored`."""
    left = sorted(set(checkpoint.names()) - set(stored.values()) - ignored)
    ignored |= checkpoint.harmless(set(left))
    left = [name for name in left if name not in ignored]
    for name in list(left):
        owner = canonical.get(name)
        if owner is not None and owner != name:
            if not _equal(checkpoint, name, stored[owner]):
                raise FrontendError(
                    f"the config ties '{name}' to '{owner}' (tie_word_embeddings), "
                    "but the checkpoint stores two different tensors"
                )
            ignored.add(name)
            left.remove(name)
    if left:
        raise FrontendError(
            f"{checkpoint.path} holds {len(left)} tensors that the model does not use "
            f"(does the config match the weights?):\n{bulleted(left)}"
        )


def _equal(checkpoint: Checkpoint, first: str, second: str, rows_at_once: int = 4096) -> bool:
    if checkpoint.shape(first) != checkpoint.shape(second) or checkpoint.dtype(first) != checkpoint.dtype(second):
        return False
    return all(
        np.array_equal(checkpoint.read(first, rows), checkpoint.read(second, rows))
        for rows in (slice(start, start + rows_at_once) for start in range(0, checkpoint.shape(first)[0], rows_at_once))
    )


def _check_tensor(name: str, declared: torch.Tensor, stored: str, checkpoint: Checkpoint) -> None:
    shape, dtype = checkpoint.shape(stored), checkpoint.dtype(stored)
    if shape != tuple(declared.shape):
        raise FrontendError(
            f"the config contradicts the weights: tensor '{stored}' has shape {list(shape)}, "
            f"the model of the config needs {list(declared.shape)}"
        )
    if not _WEIGHT_DTYPES.fullmatch(dtype):
        raise FrontendError(f"tensor '{stored}' has dtype {dtype}; weights are f32, f16, bf16 or a GGML block type")
