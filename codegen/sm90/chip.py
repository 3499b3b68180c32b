"""The chip as the kernels see it: sizes that schedules must fit, and the rates that their costs are counted in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Chip:
    """multiprocessors:      of the whole chip.
    shared_bytes:         of one block.
    memory_bytes_per_us:  read from the device's memory.
    cache_bytes_per_us:   into one multiprocessor from the L2.
    matrix_ops_per_us:    of one multiprocessor, 16-bit operands (a multiply and an add are two).
    """

    multiprocessors: int
    shared_bytes: int
    memory_bytes_per_us: float
    cache_bytes_per_us: float
    matrix_ops_per_us: float

    @classmethod
    def of(cls, target: Any) -> Chip:
        """Of a `llmc.compiler.targets.Target`."""
        return cls(
            target.multiprocessors,
            target.max_shared_bytes,
            target.memory_bytes_per_us,
            target.cache_bytes_per_us,
            target.matrix_ops_per_us,
        )


HOPPER = Chip(
    multiprocessors=132,
    shared_bytes=232448,
    memory_bytes_per_us=4.2e6,
    cache_bytes_per_us=75e3,
    matrix_ops_per_us=6.4e6,
)
"""An H200, where no target is named. The rates are what kernels reached there (docs/performance.md)."""
