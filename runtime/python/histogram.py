"""Durations that an engine has seen, as counts in buckets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Histogram:
    """Buckets are (upper bound in seconds, count), ascending; four an octave, empty ones left out."""

    sum: float  #: seconds, of all
    buckets: Sequence[tuple[float, int]]

    @property
    def count(self) -> int:
        return sum(count for _, count in self.buckets)

    @property
    def mean(self) -> float:
        """Seconds; 0 when nothing was seen."""
        return self.sum / self.count if self.count else 0.0

    def quantile(self, share: float) -> float:
        """Seconds that this share of the durations stays below, to the upper bound of its bucket (at most
        25 % too much); 0 when nothing was seen."""
        if not 0 <= share <= 1:
            raise ValueError(f"a quantile is in [0, 1], found {share}")
        left = share * self.count
        for bound, count in self.buckets:
            left -= count
            if left <= 0:
                return bound
        return self.buckets[-1][0] if self.buckets else 0.0

    def since(self, before: Histogram) -> Histogram:
        """What was seen after `before` of the same engine."""
        old = dict(before.buckets)
        news = [(bound, count - old.get(bound, 0)) for bound, count in self.buckets]
        return Histogram(self.sum - before.sum, [one for one in news if one[1]])
