"""A Hugging Face folder: config.json, safetensors (one file, or shards with an index), tokenizer files."""

from __future__ import annotations

import functools
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from llmc.errors import bulleted
from llmc.frontends.checkpoint.base import Checkpoint
from llmc.frontends.checkpoint.safetensors import SafetensorsFile
from llmc.frontends.errors import FrontendError

if TYPE_CHECKING:
    from transformers import PretrainedConfig

_INDEX = "model.safetensors.index.json"
_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "generation_config.json",
)
#: Sources from which transformers can make a tokenizer.json.
_SLOW_TOKENIZER_FILES = ("tokenizer.model", "spiece.model", "vocab.json", "tekken.json")


class HuggingFaceCheckpoint(Checkpoint):
    format = "huggingface"

    def __init__(self, path: Path):
        super().__init__(path)
        self._check_config_json()

    def _check_config_json(self) -> None:
        file = self.path / "config.json"
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise FrontendError(f"unreadable {file}: {error}") from None
        if not isinstance(content, dict) or not content.get("model_type"):
            raise FrontendError(f"{file} names no model_type")

    @functools.cached_property
    def config(self) -> PretrainedConfig:
        from llmc.frontends.huggingface.config import load_config

        return load_config(self.path)

    @functools.cached_property
    def _shards(self) -> dict[str, SafetensorsFile]:
        """The file of each tensor."""
        index = self.path / _INDEX
        if index.is_file():
            return self._indexed_shards(index)
        files = sorted(self.path.glob("*.safetensors"))
        if not files:
            self._refuse_pickles()
        owner: dict[str, SafetensorsFile] = {}
        for file in map(SafetensorsFile, files):
            for name in file.names():
                if name in owner:
                    raise FrontendError(f"tensor '{name}' is in both {owner[name].path.name} and {file.path.name}")
                owner[name] = file
        return owner

    def _indexed_shards(self, index: Path) -> dict[str, SafetensorsFile]:
        try:
            weight_map = dict(json.loads(index.read_text(encoding="utf-8"))["weight_map"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FrontendError(f"unreadable {index}: {error}") from None
        shard_names = sorted(set(weight_map.values()))
        absent = [name for name in shard_names if not (self.path / name).is_file()]
        if absent:
            raise FrontendError(f"missing weight files in {self.path}, named by {_INDEX}:\n{bulleted(absent)}")
        shards = {name: SafetensorsFile(self.path / name) for name in shard_names}
        contents = {name: set(shard.names()) for name, shard in shards.items()}
        absent = [f"{tensor} (in {shard})" for tensor, shard in weight_map.items() if tensor not in contents[shard]]
        if absent:
            raise FrontendError(f"{_INDEX} names tensors that their files lack:\n{bulleted(sorted(absent))}")
        return {tensor: shards[shard] for tensor, shard in weight_map.items()}

    def _refuse_pickles(self) -> None:
        pickles = sorted(path.name for pattern in ("*.bin", "*.pt", "*.pth") for path in self.path.glob(pattern))
        if pickles:
            raise FrontendError(
                f"{self.path} holds weights as Python pickles only ({', '.join(pickles)}): "
                "convert them to safetensors with transformers' save_pretrained"
            )

    @property
    def has_weights(self) -> bool:
        return bool(self._shards)

    def names(self) -> list[str]:
        return sorted(self._shards)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._shards[name].entry(name).shape

    def dtype(self, name: str) -> str:
        return self._shards[name].entry(name).dtype

    def read(self, name: str, rows: slice | None = None) -> np.ndarray:
        return self._shards[name].read(name, rows)

    def files(self) -> list[Path]:
        return sorted({shard.path for shard in self._shards.values()})

    def export_tokenizer(self, directory: Path) -> list[str]:
        directory.mkdir(parents=True, exist_ok=True)
        if (self.path / "tokenizer.json").is_file():
            names = [name for name in _TOKENIZER_FILES if (self.path / name).is_file()]
            for name in names:
                shutil.copyfile(self.path / name, directory / name)
            return names
        if not any((self.path / name).is_file() for name in _SLOW_TOKENIZER_FILES):
            return []
        from llmc.frontends.huggingface.tokenizer import convert_tokenizer

        return convert_tokenizer(self.path, directory)
