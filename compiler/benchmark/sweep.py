"""The highest rate of requests at which a server still answers within limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from llmc.compiler.benchmark.summary import TITLES

#: Makes a run at this rate and says why it missed its limits; empty: it kept them.
Try = Callable[[float], Awaitable[str]]


async def find_rate(attempt: Try, start: float, tolerance: float, most_runs: int) -> float | None:
    """Doubles (or halves) the rate from `start` until it passes the limit, then bisects until what kept the limits
    and what did not are within the fraction `tolerance`. None: no rate that was tried kept them.

    Assumes that a server which keeps its limits at a rate keeps them at a lower one. At most `most_runs` attempts.
    """
    good: float | None = None
    bad: float | None = None
    rate = start
    for _ in range(most_runs):
        if await attempt(rate):
            bad = rate
            rate = rate / 2 if good is None else (good + bad) / 2
        else:
            good = rate
            rate = rate * 2 if bad is None else (good + bad) / 2
        if good is not None and bad is not None and bad - good <= tolerance * good:
            break
    return good


def missed(figures: Mapping[str, Any], limits: Mapping[str, float], percentile: str) -> str:
    """Why a run did not keep `limits` (latency name -> seconds, at this percentile); empty: it did."""
    if figures["failed"]:
        return f"{figures['failed']:,} requests failed"
    for name, limit in limits.items():
        value = figures["latency"][name].get(percentile, 0.0)
        if value > limit:
            return f"{TITLES[name]}, {percentile}: {1e3 * value:,.1f} ms"
    return ""
