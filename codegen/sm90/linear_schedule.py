"""Which kernel runs a linear for a range of token counts, and with what configuration.

A *schedule* is a configuration of `linear_small` or of `linear_large`. Three questions about one, each a
pure function of it, of the problem and of the chip: whether it is legal (`why_invalid`), what it costs
where nobody has measured it (`cost`), and which ones are worth a measurement (`candidates`). `choose`
takes what was measured (`schedule_table`), else the cheapest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from mlir import ir

from ..chips import HOPPER, Chip
from ..gpu.body import bytes_of, element
from ..gpu.linear_body import LinearBody
from . import linear_large, linear_small

Schedule: TypeAlias = "linear_small.Config | linear_large.Config"

RANGES = (8, 16, 32, 64, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192, 16384)
"""Last token counts of the ranges that may have schedules of their own."""
SMALL_TOKENS = 128
"""The most tokens that `linear_small` is considered for, and half of it the fewest for `linear_large`."""
EPILOGUES = ("16bit", "f32", "residual", "glu")
"""Kinds of epilogues that decide about a schedule: results of 16 bits, of 32, the sum with a float32 residual,
and a gated activation."""


@dataclass(frozen=True)
class LinearProblem:
    """y[T, n] = x[T, k] w[n, k]^T; `epilogue` is one of EPILOGUES.

    group: rows of w that one block must hold together.
    element_bytes: of x and w; 1 stands for 8-bit floats with a scale for each row.
    """

    n: int
    k: int
    epilogue: str = "16bit"
    group: int = 1
    element_bytes: int = 2

    @property
    def gated(self) -> bool:
        return self.epilogue == "glu"

    @classmethod
    def of(cls, linear: LinearBody) -> LinearProblem:
        if linear.glu is not None:
            kind = "glu"
        elif linear.residual_sum() is not None:
            kind = "residual"
        else:
            kind = "f32" if isinstance(element(linear.result), ir.F32Type) else "16bit"
        return cls(linear.n, linear.k, kind, element_bytes=bytes_of(element(linear.input)))


def why_invalid(schedule: Schedule, problem: LinearProblem, tokens: int, chip: Chip = HOPPER) -> str | None:
    """None, or the rule that the schedule breaks for this problem and up to so many tokens."""
    if schedule.element_bytes != problem.element_bytes:
        return f"elements of {schedule.element_bytes} bytes, beside a problem of {problem.element_bytes}"
    if isinstance(schedule, linear_small.Config):
        if tokens > schedule.tokens:
            return f"a block takes {schedule.tokens} tokens, fewer than {tokens}"
        if schedule.rows % problem.group:
            return f"blocks of {schedule.rows} rows do not hold groups of {problem.group}"
        if schedule.split > 1 and problem.k < schedule.split * schedule.block_k:
            return f"K = {problem.k} is too short for {schedule.split} parts of {schedule.block_k}"
        return schedule.why_invalid(problem.gated, chip)
    return schedule.why_invalid(chip)


def cost(schedule: Schedule, problem: LinearProblem, tokens: int, chip: Chip = HOPPER) -> float:
    """Expected microseconds for `tokens` tokens; a model for comparisons, right to some 10 %."""
    if isinstance(schedule, linear_small.Config):
        return linear_small.cost(schedule, problem.n, problem.k, chip)
    return linear_large.cost(schedule, problem.n, problem.k, tokens, chip)


def candidates(problem: LinearProblem, tokens: int, chip: Chip = HOPPER) -> list[Schedule]:
    """Legal schedules for up to `tokens` tokens, cheapest first, the wider stage or tile among equals."""
    found: list[Schedule] = []
    if tokens <= SMALL_TOKENS:
        width = next(w for w in linear_small.WIDTHS if w >= tokens)
        found += linear_small.candidates(
            problem.n, problem.k, width, problem.gated, problem.group, chip, problem.element_bytes
        )
    if tokens > SMALL_TOKENS // 2:
        found += linear_large.candidates(chip, problem.element_bytes)
    legal = [s for s in found if why_invalid(s, problem, tokens, chip) is None]
    return sorted(legal, key=lambda s: (round(cost(s, problem, tokens, chip), 3), -s.stage_bytes))


def worth_timing(problem: LinearProblem, tokens: int, most: int, chip: Chip = HOPPER) -> list[Schedule]:
    """At most `most` candidates that cost little more than the cheapest, and what the cost model cannot tell
    apart: how far tiles are walked together, and stages of the ring given up for stores in flight."""
    found = candidates(problem, tokens, chip)
    limit = cost(found[0], problem, tokens, chip) * (1.15 if tokens > SMALL_TOKENS else 1.4)
    chosen = [s for s in found if cost(s, problem, tokens, chip) <= limit][:most]
    # The widest tile needs least of the L2, which counts where the chip is short of power.
    if tokens >= 1024:
        chosen.append(linear_large.widest(chip, problem.element_bytes))
    others: list[Schedule] = []
    for large in [s for s in chosen if isinstance(s, linear_large.Config)][:2]:
        shorter = replace(large, stages=large.stages - 1)
        free = (chip.shared_bytes - replace(shorter, buffers=0).shared_bytes) // (large.warpgroups * 8192)
        others.append(replace(shorter, buffers=min(8, free)))
        if tokens >= 2048:
            others += [replace(large, group=group) for group in (8, 32)]
    legal = [s for s in (*chosen, *others) if why_invalid(s, problem, tokens, chip) is None]
    return list(dict.fromkeys(legal))


def to_json(schedule: Schedule) -> dict[str, Any]:
    family = "small" if isinstance(schedule, linear_small.Config) else "large"
    return {"family": family, **asdict(schedule)}


def from_json(fields: dict[str, Any]) -> Schedule:
    """Inverse of `to_json`. Raises ValueError for what is no schedule."""
    fields = dict(fields)
    family = fields.pop("family", None)
    types = {"small": linear_small.Config, "large": linear_large.Config}
    if family not in types:
        raise ValueError(f"expected a schedule of family 'small' or 'large', found {family!r}")
    if any(not isinstance(value, int) for value in fields.values()):
        raise ValueError(f"expected integers in a schedule, found {fields}")
    try:
        return types[family](**fields)
    except TypeError as error:
        raise ValueError(f"a schedule of family '{family}': {error}") from None


def ranges(max_tokens: int) -> Iterator[tuple[int, int]]:
    """(first, last) token counts of the ranges up to `max_tokens`."""
    first = 1
    for last in (*(r for r in RANGES if r < max_tokens), max_tokens):
        yield first, last
        first = last + 1
