"""What quantizing did to the weights of each layer, gathered while they stream."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from llmc.compiler.quantization.codes import LIMITS, CodeFormat


@dataclasses.dataclass
class LayerReport:
    """Sums over the weight of one linear, as the engine stores it (projections merged).

    signal, noise:  sums of squares of the weights and of what rounding changed.
    saturated:      codes of the largest magnitude; each scale that fits its group's maximum makes one.
    zeros:          codes that are zero though the weight is not.
    scales:         smallest and largest.
    histogram:      floor(log2(scale)) -> number of scales.
    """

    name: str
    codes: str
    group: int
    elements: int = 0
    signal: float = 0.0
    noise: float = 0.0
    saturated: int = 0
    zeros: int = 0
    scales: tuple[float, float] = (math.inf, 0.0)
    histogram: Counter[int] = dataclasses.field(default_factory=Counter)

    def add(self, rows: np.ndarray, codes: np.ndarray, scales: np.ndarray) -> None:
        """rows, codes: [n, K]; scales: float32 [n, groups]."""
        rows = rows.astype(np.float32, copy=False)
        values = codes.astype(np.float32)
        magnitudes = np.abs(values)
        self.elements += rows.size
        self.saturated += int(np.count_nonzero(magnitudes >= LIMITS[self.codes]))
        self.zeros += int(np.count_nonzero((magnitudes == 0) & (rows != 0)))
        grouped = values.reshape(*scales.shape, -1)
        grouped *= scales[:, :, None]
        values -= rows
        # float32 within a row, float64 over rows.
        self.signal += float(np.einsum("ij,ij->i", rows, rows).sum(dtype=np.float64))
        self.noise += float(np.einsum("ij,ij->i", values, values).sum(dtype=np.float64))
        self.scales = (min(self.scales[0], float(scales.min())), max(self.scales[1], float(scales.max())))
        exponents, counts = np.unique(np.frexp(scales)[1] - 1, return_counts=True)
        self.histogram.update(dict(zip(exponents.tolist(), counts.tolist(), strict=True)))

    @property
    def signal_to_noise(self) -> float:
        """In dB; infinite where rounding changed nothing."""
        if not self.noise:
            return math.inf
        return 10 * math.log10(self.signal / self.noise) if self.signal else -math.inf

    def to_json(self) -> dict[str, Any]:
        snr = self.signal_to_noise
        return {
            "name": self.name,
            "codes": self.codes,
            "group": self.group,
            "elements": self.elements,
            "signal_to_noise_db": round(snr, 3) if math.isfinite(snr) else None,
            "saturated_fraction": self.saturated / self.elements,
            "zeroed_fraction": self.zeros / self.elements,
            "scale_min": self.scales[0],
            "scale_max": self.scales[1],
            "scale_log2_histogram": {str(exponent): self.histogram[exponent] for exponent in sorted(self.histogram)},
        }


class WeightReport:
    """The reports of all quantized weights, in the order in which they were written."""

    def __init__(self) -> None:
        self._layers: dict[str, LayerReport] = {}

    def add(self, name: str, format: CodeFormat, rows: np.ndarray, codes: np.ndarray, scales: np.ndarray) -> None:
        """A block of rows of the weight `name`, with what it became."""
        if name not in self._layers:
            self._layers[name] = LayerReport(name, format.type, format.group)
        self._layers[name].add(rows, codes, scales)

    def __iter__(self) -> Iterator[LayerReport]:
        return iter(self._layers.values())

    def __len__(self) -> int:
        return len(self._layers)

    def worst(self, count: int) -> list[LayerReport]:
        """Those with the least signal to noise, worst first."""
        return sorted(self, key=lambda layer: layer.signal_to_noise)[:count]

    def warnings(self) -> list[str]:
        """What looks like a fault of the checkpoint rather than like rounding."""
        ones = [layer.name for layer in self if layer.scales == (1.0, 1.0)]
        if not ones:
            return []
        return [f"all scales are 1.0 in {len(ones)} of {len(self)} layers ({ones[0]}, ...): were they lost?"]

    def table(self) -> str:
        """A line for each kind of layer (those whose names differ in numbers only)."""
        header = ("layers", "", "codes", "signal to noise, dB", "worst", "at limit", "to zero", "scales")
        rows = [header]
        for kind, layers in _by_kind(self).items():
            ratios = [layer.signal_to_noise for layer in layers]
            elements = sum(layer.elements for layer in layers)
            low, high = min(layer.scales[0] for layer in layers), max(layer.scales[1] for layer in layers)
            worst = min(layers, key=lambda layer: layer.signal_to_noise)
            group = f" / {layers[0].group}" if layers[0].group else ""
            rows.append(
                (
                    kind,
                    f"{len(layers)}",
                    f"{layers[0].codes}{group}",
                    f"{float(np.median(ratios)):.1f} ({min(ratios):.1f} to {max(ratios):.1f})",
                    _numbers(worst.name) if len(layers) > 1 else "",
                    f"{sum(layer.saturated for layer in layers) / elements:.2%}",
                    f"{sum(layer.zeros for layer in layers) / elements:.2%}",
                    f"{low:.2e} to {high:.2e}",
                )
            )
        widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        )

    def to_json(self) -> list[dict[str, Any]]:
        return [layer.to_json() for layer in self]


def _by_kind(layers: Iterable[LayerReport]) -> dict[str, list[LayerReport]]:
    kinds: dict[str, list[LayerReport]] = {}
    for layer in layers:
        kinds.setdefault(re.sub(r"(?<=\.)\d+(?=\.)", "*", layer.name), []).append(layer)
    return kinds


def _numbers(name: str) -> str:
    return ", ".join(re.findall(r"(?<=\.)\d+(?=\.)", name))
