"""Tokenizers that need conversion before the engine can carry them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from llmc.errors import first_line
from llmc.frontends.errors import FrontendError

#: GGUF key -> key of generation_config.json.
_SPECIAL_TOKENS = {
    "tokenizer.ggml.bos_token_id": "bos_token_id",
    "tokenizer.ggml.eos_token_id": "eos_token_id",
    "tokenizer.ggml.padding_token_id": "pad_token_id",
}
#: GGUF keys of tokens that end a turn although they are not the end-of-sequence token.
_STOP_TOKENS = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id")


def convert_tokenizer(source: Path, directory: Path, **options: Any) -> list[str]:
    """Saves the tokenizer that transformers makes of `source`; returns the names of the files written."""
    import transformers

    directory.mkdir(parents=True, exist_ok=True)
    before = set(directory.iterdir())
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, **options)
        tokenizer.save_pretrained(directory)
    except (ValueError, KeyError, TypeError, OSError, ImportError) as error:
        reason = first_line(error)
        raise FrontendError(f"cannot convert the tokenizer of {source}: {reason}") from None
    return sorted(path.name for path in set(directory.iterdir()) - before)


def convert_gguf_tokenizer(path: Path, fields: dict[str, Any], directory: Path) -> list[str]:
    """Saves the tokenizer inside a .gguf file, and the special tokens it names as generation defaults."""
    if "tokenizer.ggml.tokens" not in fields:
        return []
    names = convert_tokenizer(path.parent, directory, gguf_file=path.name)
    generation = {target: fields[key] for key, target in _SPECIAL_TOKENS.items() if key in fields}
    stops = sorted({fields[key] for key in _STOP_TOKENS if key in fields})
    if len(stops) > 1:
        generation["eos_token_id"] = stops
    target = directory / "generation_config.json"
    target.write_text(json.dumps(generation, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return sorted([*names, target.name])
