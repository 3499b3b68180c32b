"""What every weight reader offers, whatever its file format."""

from __future__ import annotations

import abc
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from transformers import PretrainedConfig

    from llmc.frontends.checkpoint.quantized.description import StoredFormat


class Checkpoint(abc.ABC):
    """A model on disk: its configuration, its tensors by Hugging Face name, its tokenizer.

    Tensors are read from memory-mapped files one at a time, or a range of rows at a time, so that a packer of any
    model size needs memory for one tensor only.
    """

    #: "huggingface" or "gguf".
    format: str

    def __init__(self, path: Path):
        self.path = path

    @property
    @abc.abstractmethod
    def config(self) -> PretrainedConfig:
        """The configuration of the model, as transformers understands it."""

    @property
    @abc.abstractmethod
    def has_weights(self) -> bool:
        """False for a folder that holds a configuration only."""

    @abc.abstractmethod
    def names(self) -> list[str]:
        """The names of all tensors, sorted."""

    @abc.abstractmethod
    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, as the Hugging Face module declares it."""

    @abc.abstractmethod
    def dtype(self, name: str) -> str:
        """The storage type of a tensor: "f32", "f16", "bf16", ..., or a GGML block type such as "q4_1"."""

    @abc.abstractmethod
    def read(self, name: str, rows: slice | None = None) -> np.ndarray:
        """The values of a tensor, or of the given range of its first dimension.

        Plain tensors come in their storage type (bfloat16 through ml_dtypes) without a copy, as a read-only view of the
        file; block-quantized ones come dequantized to float32.
        """

    @abc.abstractmethod
    def files(self) -> list[Path]:
        """The files that hold the tensors."""

    @abc.abstractmethod
    def export_tokenizer(self, directory: Path) -> list[str]:
        """Writes the tokenizer, chat template and generation defaults in Hugging Face form; returns the file names."""

    def buffer_divisors(self) -> dict[str, np.ndarray]:
        """Factors that the file wants the rope frequencies divided by, keyed by buffer base name."""
        return {}

    def harmless(self, names: set[str]) -> set[str]:
        """Those of `names`, tensors that the model does not use, whose values make no difference."""
        return set()

    # ---- what a checkpoint that is quantized stores, by the name of the tensor that it stands for ----

    def stored_format(self, name: str) -> StoredFormat | None:
        """How the tensor is quantized; None: it is not."""
        return None

    def quantized_names(self) -> list[str]:
        """The tensors that are quantized, sorted."""
        return []

    def stored_codes(self, name: str, rows: slice) -> np.ndarray:
        """Codes [n, K] of a range of out features."""
        raise NotImplementedError

    def stored_scales(self, name: str, rows: slice) -> np.ndarray:
        """Their float32 scales [n, K / group]."""
        raise NotImplementedError

    def stored_zeros(self, name: str, rows: slice) -> np.ndarray | None:
        """Their zero points [n, K / group], or None where the format has none."""
        raise NotImplementedError

    def kv_scales(self) -> dict[str, float]:
        """Stored scales of keys and values, by tensor."""
        return {}

    def check_values(self, advance: Callable[[int], None] = lambda _: None) -> list[str]:
        """Reads what quantized layers store beside their codes and reports each layer to `advance`.

        Raises FrontendError for values that cannot be right; returns warnings about those that may be wrong.
        """
        return []

    def identity(self) -> dict[str, Any]:
        """What the engine's manifest records about the model."""
        return {
            "format": self.format,
            "name": self.path.name,
            "architecture": architecture_of(self.config),
            "model_type": self.config.model_type,
            "has_weights": self.has_weights,
        }


def architecture_of(config: PretrainedConfig) -> str:
    """The name of the model class, which .gguf files do not carry."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

    if config.architectures:
        return config.architectures[0]
    if type(config) in MODEL_FOR_CAUSAL_LM_MAPPING:
        return MODEL_FOR_CAUSAL_LM_MAPPING[type(config)].__name__
    return type(config).__name__
