"""A quantized Hugging Face folder as a checkpoint of the plain model.

A layer's tensors appear as one, `<layer>.weight` of shape [N, K]. What it stores is read by `stored_codes`; its values
only where that was asked for, since taking them in place of the codes makes another model of it.
"""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from llmc.frontends.checkpoint.base import Checkpoint
from llmc.frontends.checkpoint.quantized.description import StoredFormat
from llmc.frontends.checkpoint.quantized.layer import ScaleRange, StoredLayer
from llmc.frontends.checkpoint.quantized.method import Method, Tensors
from llmc.frontends.errors import FrontendError

if TYPE_CHECKING:
    from collections.abc import Callable

    from transformers import PretrainedConfig


class QuantizedCheckpoint(Checkpoint):
    """`files`: the folder as it is; `dequantize`: whether layers may be read as values."""

    def __init__(self, files: Checkpoint, method: Method, dequantize: bool = False):
        super().__init__(files.path)
        self.format = files.format
        self.method = method
        self.dequantize = dequantize
        self._files = files
        if not files.has_weights:
            raise FrontendError(
                f"{self.path} is quantized ({method.name}) and has no weights: expected *.safetensors, whose tensors "
                "say which layers are; or compile the configuration of the unquantized model"
            )

    @functools.cached_property
    def config(self) -> PretrainedConfig:
        """The configuration of the plain model."""
        config = copy.deepcopy(self._files.config)
        if hasattr(config, "quantization_config"):
            del config.quantization_config
        return config

    @functools.cached_property
    def _layers(self) -> dict[str, StoredLayer]:
        """The quantized layers by the tensor that they stand for."""
        tensors = Tensors(self._files)
        modules = self.method.modules(tensors)
        if not modules:
            raise FrontendError(
                f"{self.path} has a quantization configuration ({self.method.name}), but no tensor of such a layer: "
                "one of them is wrong; remove the configuration if the weights are plain"
            )
        layers = [StoredLayer(self.method.describe(m, tensors), self._files, tensors.names) for m in modules]
        return {layer.description.weight: layer for layer in layers}

    @functools.cached_property
    def _kv_scales(self) -> dict[str, str]:
        """Scales of keys and values: tensor -> the module that has it."""
        endings = self.method.kv_suffixes
        found = [name for name in self._files.names() if name.rpartition(".")[2] in endings]
        return {name: name.rpartition(".")[0] for name in found}

    @functools.cached_property
    def _plain(self) -> list[str]:
        """Tensors that are what they seem."""
        consumed = {name for layer in self._layers.values() for name in layer.description.names()}
        return sorted(set(self._files.names()) - consumed - set(self._kv_scales))

    @property
    def has_weights(self) -> bool:
        return self._files.has_weights

    def names(self) -> list[str]:
        return sorted([*self._plain, *self._layers])

    def shape(self, name: str) -> tuple[int, ...]:
        layer = self._layers.get(name)
        return layer.shape if layer else self._files.shape(name)

    def dtype(self, name: str) -> str:
        return "f32" if name in self._layers else self._files.dtype(name)

    def read(self, name: str, rows: slice | None = None) -> np.ndarray:
        layer = self._layers.get(name)
        if layer is None:
            return self._files.read(name, rows)
        if not self.dequantize:
            raise FrontendError(f"'{name}' is quantized ({layer.format}): dequantize the checkpoint with --dequantize")
        return layer.dequantize(slice(None) if rows is None else rows)

    def stored_format(self, name: str) -> StoredFormat | None:
        layer = self._layers.get(name)
        return layer.format if layer else None

    def stored_codes(self, name: str, rows: slice) -> np.ndarray:
        return self._layers[name].codes(rows)

    def stored_scales(self, name: str, rows: slice) -> np.ndarray:
        return self._layers[name].scales(rows)

    def stored_zeros(self, name: str, rows: slice) -> np.ndarray | None:
        return self._layers[name].zeros(rows)

    def quantized_names(self) -> list[str]:
        return sorted(self._layers)

    def kv_scales(self) -> dict[str, float]:
        return {name: float(np.asarray(self._files.read(name)).reshape(-1)[0]) for name in sorted(self._kv_scales)}

    def check_values(self, advance: Callable[[int], None] = lambda _: None) -> list[str]:
        """Reads every scale, zero point and order. Raises FrontendError for a wrong one; returns warnings."""
        ranges: dict[str, ScaleRange] = {}
        for name, layer in self._layers.items():
            ranges[name] = layer.check_values()
            advance(1)
        return [*_warn_of_ones(ranges), *self._warn_of_kv_scales()]

    def _warn_of_kv_scales(self) -> list[str]:
        scales = self.kv_scales()
        if not scales:
            return []
        bad = [f"{name} = {value}" for name, value in scales.items() if not np.isfinite(value) or value <= 0]
        if bad:
            raise FrontendError(f"scales of keys and values must be positive numbers: found {', '.join(bad[:4])}")
        text = (
            f"{len(scales)} scales of keys and values ({min(scales.values()):g} to {max(scales.values()):g}) are not "
            "used: the KV cache has no 8-bit type yet"
        )
        if set(scales.values()) == {1.0}:
            text += "; all of them are 1.0, which quantizers leave when they never measured any"
        return [text]

    def files(self) -> list[Path]:
        return self._files.files()

    def export_tokenizer(self, directory: Path) -> list[str]:
        return self._files.export_tokenizer(directory)

    def harmless(self, names: set[str]) -> set[str]:
        """Biases of zeros, which AutoGPTQ writes for layers that have none."""
        biases = {f"{name.removesuffix('.weight')}.bias" for name in self._layers}
        return {name for name in names & biases if not np.asarray(self._files.read(name)).any()}

    def identity(self) -> dict[str, Any]:
        return {**super().identity(), "quantization": self.method.name}


def _warn_of_ones(ranges: dict[str, ScaleRange]) -> list[str]:
    ones = [name for name, found in ranges.items() if found.all_ones]
    if not ones:
        return []
    some = ", ".join(ones[:3]) + (", ..." if len(ones) > 3 else "")
    return [
        f"all scales of {len(ones)} of {len(ranges)} quantized layers are 1.0 ({some}): "
        "a quantizer that never wrote them leaves such; compare the answers with those of the unquantized model"
    ]
