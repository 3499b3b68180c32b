"""Names of tensors in checkpoints that differ from the names in transformers' modules.

transformers renames tensors while it loads: GPT-NeoX checkpoints say `embed_out`, the module says `lm_head`. The same
rules are applied here, in both directions; rules that also change values are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def to_module(model: PreTrainedModel, names: list[str]) -> dict[str, str]:
    """Module name -> the checkpoint's name of the same tensor, for the names of a checkpoint."""
    from transformers.conversion_mapping import get_model_conversion_mapping

    rules = _renamings(get_model_conversion_mapping(model))
    return {_apply(rules, name): name for name in names}


def to_checkpoint(model: PreTrainedModel, names: list[str]) -> dict[str, str]:
    """Module name -> the name that a checkpoint saved today gives it."""
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import PrefixChange

    transforms = get_model_conversion_mapping(model, add_legacy=False)
    reverse = [item.reverse_transform() for item in reversed(transforms) if not isinstance(item, PrefixChange)]
    rules = _renamings(reverse)
    return {name: _apply(rules, name) for name in names}


def _renamings(transforms: list[Any]) -> list[Any]:
    from transformers.core_model_loading import WeightRenaming

    return [item for item in transforms if isinstance(item, WeightRenaming)]


def _apply(rules: list[Any], name: str) -> str:
    for rule in rules:
        name, _ = rule.rename_source_key(name)
    return name
