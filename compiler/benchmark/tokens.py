"""A tokenizer for prompts: of an engine, of a Hugging Face folder, or a tokenizer.json."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import tokenizers

from llmc.errors import OptionError


class PromptTokenizer:
    def __init__(self, path: Path) -> None:
        """Raises OptionError."""
        from llmc.runtime.engine_parts import read_part
        from llmc.runtime.errors import EngineError

        file = path / "tokenizer.json" if path.is_dir() and (path / "tokenizer.json").is_file() else path
        try:
            if file.suffix == ".json":
                data: bytes | None = file.read_bytes()
            else:
                data = read_part(path, "tokenizer/tokenizer.json")
        except OSError as error:
            raise OptionError(f"--tokenizer: cannot read {file}: {error.strerror}") from None
        except EngineError as error:
            raise OptionError(f"--tokenizer: {error}") from None
        if data is None:
            raise OptionError(f"--tokenizer: expected an engine, a folder with tokenizer.json or such a file: {path}")
        try:
            self._backend = tokenizers.Tokenizer.from_buffer(data)
        except Exception as error:  # the package raises plain Exception
            raise OptionError(f"--tokenizer: {path}: expected a tokenizer.json, found {error}") from None

    @property
    def vocab_size(self) -> int:
        return int(self._backend.get_vocab_size())

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return list(self._backend.encode(text, add_special_tokens=add_special_tokens).ids)

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._backend.decode(list(ids), skip_special_tokens=True))
