"""manifest.json: making one, and reading one with errors that say what to do.

Definition: docs/engine-format.md. No field depends on where or when the engine was made.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llmc
from llmc.compiler.options import CompileOptions, ResolvedOptions
from llmc.compiler.output import canonical_json
from llmc.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from llmc.compiler.quantization.stored import Assignment
    from llmc.compiler.weights import Weight

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
PLAN = "plan.json"
RECIPES = "recipes.json"
WEIGHTS = "weights.safetensors"
TOKENIZER = "tokenizer"

#: Fields of a config that say nothing about the model's function.
_VOLATILE_CONFIG = {"_name_or_path", "transformers_version", "dtype", "torch_dtype", "use_cache"}


def build_manifest(
    *,
    model: dict[str, Any],
    limits: dict[str, int],
    resolved: ResolvedOptions,
    weights: Iterable[Weight],
    weight_hashes: dict[str, str] | None,
    parts: list[dict[str, Any]],
    stored: Sequence[Assignment] = (),
) -> dict[str, Any]:
    """The manifest as a JSON value. `weight_hashes` None makes a stripped engine.

    stored: the quantization that the checkpoint brought along.
    """
    formats = [resolved.quantization] if resolved.quantization else [assignment.format for assignment in stored]
    return {
        "format_version": FORMAT_VERSION,
        "compiler": {"name": "llmc", "version": llmc.__version__},
        "target": {
            "name": resolved.target.runtime_name,
            "arch": resolved.target.arch,
            "features": list(resolved.target.features),
        },
        "model": model,
        "limits": limits,
        "precision": {
            "weights": resolved.weight_dtype,
            "activations": resolved.activation_dtype,
            "kv_cache": resolved.kv_cache_dtype,
            **({"quantization": "+".join(format.name for format in formats)} if formats else {}),
        },
        "weights": weight_section(weights, weight_hashes),
        "parts": parts,
    }


def weight_section(weights: Iterable[Weight], hashes: dict[str, str] | None) -> dict[str, Any]:
    """The manifest's `weights`: stored dtype, shape and sha256 of each tensor."""
    return {
        "bound": hashes is not None,
        "tensors": [
            {
                "name": weight.name,
                "dtype": weight.dtype.name,
                "shape": list(weight.stored_shape),
                "sha256": hashes[weight.name] if hashes is not None else None,
            }
            for weight in weights
        ],
    }


def limits_of(options: CompileOptions, max_seq_len: int, block_size: int) -> dict[str, int]:
    """The manifest's `limits`."""
    return {
        "max_batch_size": options.max_batch_size,
        "max_num_tokens": options.max_num_tokens,
        "max_seq_len": max_seq_len,
        "block_size": block_size,
        "max_blocks_per_seq": -(-max_seq_len // block_size),
    }


def model_section(
    config: Any, identity: dict[str, Any], tokenizer: Path | None, name: str | None = None
) -> dict[str, Any]:
    """The manifest's `model`.

    config:    the transformers configuration.
    identity:  what the frontend says about the checkpoint.
    tokenizer: folder with generation_config.json, whose token ids win over the config's.
    name:      what to call the model; None: the name of a .gguf file, else the architecture.
    """
    generation = _generation_config(tokenizer)
    text_config = config.get_text_config()
    eos = _first(generation.get("eos_token_id"), getattr(text_config, "eos_token_id", None), [])
    bos = _first(generation.get("bos_token_id"), getattr(text_config, "bos_token_id", None))
    return {
        "architecture": identity["architecture"],
        "name": name or _default_name(identity),
        "vocab_size": text_config.vocab_size,
        "hidden_size": text_config.hidden_size,
        "num_layers": text_config.num_hidden_layers,
        "bos_token_id": bos,
        "eos_token_ids": sorted({eos} if isinstance(eos, int) else set(eos)),
        "config_sha256": config_sha256(config),
    }


def config_sha256(config: Any) -> str:
    """Identity of a configuration: two checkpoints with equal ones fit the same engine."""
    fields = {k: v for k, v in config.to_dict().items() if k not in _VOLATILE_CONFIG}
    text = json.dumps(fields, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _default_name(identity: dict[str, Any]) -> str:
    """A name out of the checkpoint itself: the folder that it lies in must not matter."""
    if identity["format"] == "gguf":
        return str(identity["name"]).removesuffix(".gguf")
    return str(identity["architecture"])


def _generation_config(tokenizer: Path | None) -> dict[str, Any]:
    file = tokenizer / "generation_config.json" if tokenizer else None
    if file is None or not file.is_file():
        return {}
    return json.loads(file.read_text(encoding="utf-8"))


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def read_manifest(data: bytes, where: str) -> dict[str, Any]:
    """Parses a manifest and checks its version and outline. Raises EngineError."""
    try:
        manifest = json.loads(data)
        version = manifest["format_version"]
    except (ValueError, TypeError, KeyError) as error:
        raise EngineError(
            f"{where}: manifest.json is damaged ({error}); copy the engine again or recompile it"
        ) from None
    if version != FORMAT_VERSION:
        newer = isinstance(version, int) and version > FORMAT_VERSION
        remedy = "install a newer llmc" if newer else "recompile the engine"
        raise EngineError(f"{where}: expected engine format {FORMAT_VERSION}, found {version}; {remedy}")
    absent = {"target", "model", "limits", "weights", "parts"} - manifest.keys()
    if absent:
        raise EngineError(f"{where}: manifest.json lacks {', '.join(sorted(absent))}; recompile the engine")
    return manifest


def write_manifest(manifest: dict[str, Any], path: Path) -> None:
    path.write_bytes(canonical_json(manifest))
