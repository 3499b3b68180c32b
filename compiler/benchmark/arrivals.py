"""When requests come: at random at a rate, or as in a trace."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from llmc.compiler.benchmark.workload import WorkItem


def at_rate(items: Sequence[WorkItem], rate: float, rng: random.Random, burstiness: float = 1.0) -> list[WorkItem]:
    """The items at `rate` a second, the first at once.

    Gaps are gamma distributed with the shape `burstiness` and the mean 1 / rate: 1 is a Poisson process, less comes
    in bursts, more is more even. The same generator state gives the same gaps at every rate, only stretched.
    """
    moment = 0.0
    found = []
    for item in items:
        found.append(dataclasses.replace(item, arrival=moment))
        moment += rng.gammavariate(burstiness, 1.0) / burstiness / rate
    return found


def sped_up(items: Sequence[WorkItem], factor: float) -> list[WorkItem]:
    """A trace `factor` times as fast."""
    return [
        item if item.arrival is None else dataclasses.replace(item, arrival=item.arrival / factor) for item in items
    ]
