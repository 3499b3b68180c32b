"""Times a step of an engine kernel by kernel, beside what each kernel has to move and to compute."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmc.runtime import _runtime
from llmc.runtime.engine_parts import read_json_part
from llmc.runtime.load_options import load_options
from llmc.runtime.step_cost import StepCost, StepShape


@dataclass(frozen=True)
class KernelProfile:
    """All launches of one kernel in a step, and what they are for.

    `seconds` is for them back to back, `chain_seconds` by which the step is longer for them.
    """

    name: str
    anchor: str
    launches: int
    seconds: float
    chain_seconds: float
    bytes: int
    flops: int


@dataclass(frozen=True)
class StepProfile:
    """`seconds` is the whole step on the device, launched as one chain."""

    seconds: float
    kernels: list[KernelProfile]

    @property
    def bytes(self) -> int:
        return sum(kernel.bytes for kernel in self.kernels)


class Profiler:
    """An engine loaded to be timed; it serves no requests.

    Takes the options of `load_engine`. Times are the device's own, without the host's work.
    """

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        self.path = Path(path)
        self._native = _runtime.Profiler(str(self.path), load_options(**options))
        self._cost = StepCost(read_json_part(self.path, "manifest.json"), read_json_part(self.path, "plan.json"))

    def close(self) -> None:
        self._native.close()

    def __enter__(self) -> Profiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def bandwidth(self) -> float:
        """Bytes per second of a copy on the device, read and written together; 0 where there is no room for one."""
        return self._native.bandwidth()

    def step(self, num_sequences: int, num_tokens: int = 1, context: int = 128, repeats: int = 5) -> StepProfile:
        """A step of sequences that each compute `num_tokens` tokens and then are `context` tokens long.

        Raises InvalidArgumentError beyond the engine's limits.
        """
        shape = StepShape(num_sequences, num_tokens, context)
        seconds, times = self._native.step(num_sequences, num_tokens, context, repeats)
        costs = self._cost.of(shape)
        return StepProfile(
            seconds,
            [
                KernelProfile(
                    name,
                    costs[name].anchor,
                    launches,
                    alone,
                    chain,
                    round(costs[name].bytes),
                    round(costs[name].flops),
                )
                for name, launches, alone, chain in times
            ],
        )
