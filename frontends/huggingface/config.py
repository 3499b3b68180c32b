"""Model configurations: loading, and refusing what would silently change the result."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmc.errors import bulleted, first_line
from llmc.frontends.errors import FrontendError
from llmc.frontends.huggingface import rope

if TYPE_CHECKING:
    from transformers import PretrainedConfig

#: Fields that older checkpoints write at the top level and transformers folds into `rope_parameters`.
_LEGACY_FIELDS = frozenset(
    {"rope_theta", "rope_scaling", "rope_local_base_freq", "partial_rotary_factor", "rotary_pct", "rotary_emb_base"}
)

#: A field that matches this and that the model class does not know would be ignored although it changes the result.
_MATH_FIELD = re.compile(
    r"softcap|scal(e|ing)|multiplier|rope|rotary|norm|bias|window|alibi|sink|clip|clamp|qk_|temperature|expert|act_fn"
)


#: What the metadata of every .gguf file of a decoder says.
_GGUF_SIZES = ("block_count", "context_length", "embedding_length", "attention.head_count")


def load_config(path: Path) -> PretrainedConfig:
    """The configuration of a Hugging Face folder."""
    import transformers
    from huggingface_hub.errors import StrictDataclassError

    raw = json.loads((path / "config.json").read_text(encoding="utf-8"))
    rope.check_types(raw.get("rope_scaling"))
    rope.check_types(raw.get("rope_parameters"))
    try:
        config = transformers.AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except KeyError as error:
        raise FrontendError(f"{path / 'config.json'}: missing or unknown entry {error}") from None
    except StrictDataclassError as error:  # a field of a wrong type: the second line says which
        raise FrontendError(f"{path / 'config.json'}: {' '.join(str(error).split())}") from None
    except Exception as error:  # what transformers raises on a config is about the config
        if raw["model_type"] not in transformers.CONFIG_MAPPING:
            raise FrontendError(f"unknown architecture: model_type '{raw['model_type']}' in {path}") from None
        raise FrontendError(f"{path / 'config.json'}: {first_line(error)}") from None
    _check_supported(config, raw)
    return config


def _check_supported(config: PretrainedConfig, raw: dict[str, Any]) -> None:
    names = raw.get("architectures") or []
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise FrontendError(f"config.json: architectures must be a list of class names, found {names!r}")
    extra = set(raw) - _class_fields(type(config)) - _LEGACY_FIELDS
    ignored = sorted(f"{name} = {raw[name]!r}" for name in extra if _MATH_FIELD.search(name) and raw[name])
    if ignored:
        raise FrontendError(
            f"config fields that {type(config).__name__} ignores although they look like part of the model:\n"
            f"{bulleted(ignored)}"
        )


def _class_fields(config_class: type[PretrainedConfig]) -> set[str]:
    """The fields that a configuration class declares."""
    return set(config_class().to_dict()) | set(getattr(config_class, "attribute_map", {}))


def load_gguf_config(path: Path, fields: dict[str, Any]) -> PretrainedConfig:
    """The configuration of a .gguf file, with the rope scaling that transformers' own reader leaves out."""
    import transformers

    # transformers fills what is not there with the sizes of some other model.
    architecture = fields["general.architecture"]
    missing = [key for name in _GGUF_SIZES if (key := f"{architecture}.{name}") not in fields]
    if missing:
        raise FrontendError(f"{path} lacks the metadata {', '.join(missing)}; convert the model again")
    try:
        config = transformers.AutoConfig.from_pretrained(path.parent, gguf_file=path.name, local_files_only=True)
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise FrontendError(f"{path}: {first_line(error)}") from None
    scaling = {
        key.removeprefix(f"{architecture}.rope.scaling."): value
        for key, value in fields.items()
        if key.startswith(f"{architecture}.rope.scaling.")
    }
    _apply_gguf_rope_scaling(config, scaling)
    return config


def _apply_gguf_rope_scaling(config: PretrainedConfig, scaling: dict[str, Any]) -> None:
    kind = scaling.get("type", "none" if "factor" not in scaling else "linear")
    if kind == "none":
        return
    rope.check_types({"rope_type": kind})
    parameters = {"rope_type": kind, "factor": float(scaling["factor"])}
    if kind == "yarn":
        parameters["original_max_position_embeddings"] = int(
            scaling.get("original_context_length", config.max_position_embeddings / parameters["factor"])
        )
        for source, target in (("yarn_beta_fast", "beta_fast"), ("yarn_beta_slow", "beta_slow")):
            if source in scaling:
                parameters[target] = float(scaling[source])
        if "attn_factor" in scaling:
            scale = 0.1 * math.log(parameters["factor"]) + 1.0
            parameters["attention_factor"] = float(scaling["attn_factor"]) * scale
    elif kind != "linear":
        raise FrontendError(f"rope scaling '{kind}' of .gguf files is not read")
    config.rope_parameters = {**(config.rope_parameters or {}), **parameters}
