"""How long prompts and answers are: a number, a range, or a normal distribution."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from llmc.errors import OptionError

_FORMS = "tokens (128), a range of equally likely lengths (64-256) or normal:MEAN:DEVIATION (normal:512:128)"


@dataclass(frozen=True)
class Lengths:
    """Equally likely from `low` to `high`; with a `deviation`, normal around `mean` within these bounds."""

    low: int
    high: int
    mean: float = 0.0
    deviation: float = 0.0

    @staticmethod
    def parse(option: str, text: str) -> Lengths:
        """Raises OptionError that names the option."""
        if match := re.fullmatch(r"(\d+)(?:-(\d+))?", text):
            low = int(match[1])
            lengths = Lengths(low, int(match[2] or low))
        elif match := re.fullmatch(r"normal:(\d+(?:\.\d+)?):(\d+(?:\.\d+)?)", text):
            mean, deviation = float(match[1]), float(match[2])
            # Four deviations: what lies beyond would be one request in sixteen thousand.
            lengths = Lengths(1, max(1, round(mean + 4 * deviation)), mean, deviation)
            if deviation == 0:
                lengths = Lengths(round(mean), round(mean))
        else:
            raise OptionError(f"{option}: expected {_FORMS}, found {text!r}")
        if not 1 <= lengths.low <= lengths.high:
            raise OptionError(f"{option}: expected lengths of 1 token or more, the smaller first, found {text!r}")
        return lengths

    def draw(self, rng: random.Random, count: int) -> list[int]:
        if not self.deviation:
            return [rng.randint(self.low, self.high) for _ in range(count)]
        drawn = (round(rng.gauss(self.mean, self.deviation)) for _ in range(count))
        return [min(max(length, self.low), self.high) for length in drawn]
