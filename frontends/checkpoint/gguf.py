"""A .gguf file as a checkpoint: dequantized weights under their Hugging Face names, config, tokenizer."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from llmc.frontends.checkpoint.base import Checkpoint
from llmc.frontends.checkpoint.gguf_file import GgufFile, GgufTensor
from llmc.frontends.checkpoint.gguf_names import FAMILIES, TensorSource, map_tensors
from llmc.frontends.errors import FrontendError

if TYPE_CHECKING:
    from transformers import PretrainedConfig

_ROPE_FACTORS = "rope_freqs.weight"


class GgufCheckpoint(Checkpoint):
    format = "gguf"

    def __init__(self, path: Path):
        super().__init__(path)
        self._file = GgufFile(path)
        self.architecture = self._file.fields.get("general.architecture", "")
        if self.architecture not in FAMILIES:
            raise FrontendError(
                f"{path}: unknown architecture '{self.architecture}'; "
                f".gguf files of these are read: {', '.join(sorted(FAMILIES))}"
            )

    @functools.cached_property
    def config(self) -> PretrainedConfig:
        from llmc.frontends.huggingface.config import load_gguf_config

        return load_gguf_config(self.path, self._file.fields)

    @property
    def has_weights(self) -> bool:
        return bool(self._file.tensors)

    @functools.cached_property
    def _sources(self) -> dict[str, TensorSource]:
        names = [name for name in self._file.tensors if name != _ROPE_FACTORS]
        return map_tensors(FAMILIES[self.architecture], names, self.config)

    def _tensor(self, name: str) -> GgufTensor:
        return self._file.tensors[self._sources[name].name]

    def names(self) -> list[str]:
        return sorted(self._sources)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._tensor(name).shape

    def dtype(self, name: str) -> str:
        return self._tensor(name).type.name.lower()

    def read(self, name: str, rows: slice | None = None) -> np.ndarray:
        source = self._sources[name]
        selected: slice | np.ndarray | None = rows
        if source.row_order is not None:
            order = source.row_order(self.shape(name)[0])
            selected = order if rows is None else order[rows]
        values = self._file.read(source.name, selected)
        return values + np.float32(source.offset) if source.offset else values

    def buffer_divisors(self) -> dict[str, np.ndarray]:
        """llama.cpp stores llama3 rope scaling as one factor per frequency instead of the configuration's fields."""
        if _ROPE_FACTORS not in self._file.tensors:
            return {}
        return {"inv_freq": np.asarray(self._file.read(_ROPE_FACTORS), dtype=np.float32)}

    def files(self) -> list[Path]:
        return [self.path]

    def export_tokenizer(self, directory: Path) -> list[str]:
        from llmc.frontends.huggingface.tokenizer import convert_gguf_tokenizer

        return convert_gguf_tokenizer(self.path, self._file.fields, directory)
