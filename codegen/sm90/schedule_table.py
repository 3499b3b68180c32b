"""What was measured: schedules of linears, in a JSON file beside this one, or one that the user made.

`llmc tune` writes such files (docs/cli.md). An entry holds for one kind of epilogue, n, k and bytes of an
element, and has a schedule for each range of token counts; it names the run (device, commit, command) that it
comes from.
A problem takes the entry of its own sizes. One without takes that of the nearest sizes, where its
schedule is legal and the cost model sees no better one; else the cost model decides alone.
"""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmc.errors import CompileError

from ..chips import HOPPER, Chip
from .linear_schedule import EPILOGUES, LinearProblem, Schedule, candidates, cost, from_json, to_json, why_invalid

FORMAT = 1
SHIPPED = Path(__file__).with_name("schedules.json")
NEAR = math.log(1.25)
"""How far (logarithm of the ratio) n and k of the nearest entry may be."""
WORSE = 1.03
"""How much dearer than the cheapest the nearest entry's schedule may be by the cost model."""


@dataclass(frozen=True)
class Entry:
    """Measured schedules of a problem: (last token count, schedule, microseconds), ascending."""

    problem: LinearProblem
    schedules: tuple[tuple[int, Schedule, float], ...]
    run: int

    def at(self, tokens: int) -> Schedule:
        """The schedule for a range that ends with `tokens`; the last one for what is longer."""
        return next((s for last, s, _ in self.schedules if tokens <= last), self.schedules[-1][1])

    def distance(self, problem: LinearProblem) -> tuple[float, float]:
        return abs(math.log(self.problem.n / problem.n)), abs(math.log(self.problem.k / problem.k))


@dataclass(frozen=True)
class ScheduleTable:
    """Entries for one architecture, and the runs that they come from."""

    arch: str
    runs: tuple[dict[str, Any], ...] = ()
    entries: tuple[Entry, ...] = ()

    def measured(self, problem: LinearProblem, tokens: int, chip: Chip = HOPPER) -> Schedule | None:
        """The schedule of the nearest entry for a range that ends with `tokens`, where it serves."""
        near = [
            e for e in self.entries
            if e.problem.epilogue == problem.epilogue and e.problem.element_bytes == problem.element_bytes
        ]  # fmt: skip
        near = [e for e in near if max(e.distance(problem)) <= NEAR]
        if not near:
            return None
        entry = min(near, key=lambda e: sum(e.distance(problem)))
        schedule = entry.at(tokens)
        if why_invalid(schedule, problem, tokens, chip) is not None:
            return None
        if sum(entry.distance(problem)):
            best = cost(candidates(problem, tokens, chip)[0], problem, tokens, chip)
            if cost(schedule, problem, tokens, chip) > best * WORSE:
                return None
        return schedule

    def choose(self, problem: LinearProblem, tokens: int, chip: Chip = HOPPER) -> Schedule:
        """What was measured, else the cheapest by the cost model."""
        return self.measured(problem, tokens, chip) or candidates(problem, tokens, chip)[0]

    def merged(self, other: ScheduleTable) -> ScheduleTable:
        """With the entries of another table, which replace those of the same problem."""
        replaced = {e.problem for e in other.entries}
        kept = [e for e in self.entries if e.problem not in replaced]
        runs = sorted({e.run for e in kept})
        moved = [Entry(e.problem, e.schedules, runs.index(e.run)) for e in kept]
        added = [Entry(e.problem, e.schedules, len(runs) + e.run) for e in other.entries]
        entries = sorted([*moved, *added], key=lambda e: order(e.problem))
        return ScheduleTable(self.arch, (*(self.runs[i] for i in runs), *other.runs), tuple(entries))

    def to_json(self) -> str:
        """One schedule a line, so that changes of a table can be read."""
        lines = [f'{{"format": {FORMAT}, "arch": {json.dumps(self.arch)},', ' "runs": [']
        lines += [",\n".join(f"  {json.dumps(run)}" for run in self.runs), ' ],\n "linear": [']
        entries = []
        for entry in self.entries:
            p = entry.problem
            head = {"epilogue": p.epilogue, "n": p.n, "k": p.k, "element_bytes": p.element_bytes, "run": entry.run}
            rows = [
                "   " + json.dumps({"max_tokens": last, "us": round(us, 2), **_config(schedule)})
                for last, schedule, us in entry.schedules
            ]
            entries.append(f'  {json.dumps(head)[:-1]}, "schedules": [\n' + ",\n".join(rows) + "]}")
        return "\n".join([*lines, ",\n".join(entries), " ]}", ""])


def _config(schedule: Schedule) -> dict[str, Any]:
    """Without the bytes of an element, which are the entry's."""
    return {name: value for name, value in to_json(schedule).items() if name != "element_bytes"}


def order(problem: LinearProblem) -> tuple[int, int, int, str]:
    """Key by which the entries of a table are sorted."""
    return -problem.element_bytes, problem.k, problem.n, problem.epilogue


def load(path: Path = SHIPPED) -> ScheduleTable:
    """Reads a table. Raises CompileError for a file that is none."""
    try:
        return _parse(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise CompileError(f"cannot read the schedules {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise CompileError(
            f"{path} is no table of schedules: {what}; `llmc tune time FOLDER -o FILE` writes one"
        ) from None


@functools.cache
def shipped() -> ScheduleTable:
    return load()


def _parse(fields: dict[str, Any]) -> ScheduleTable:
    if fields["format"] != FORMAT:
        raise ValueError(f"expected format {FORMAT}, found {fields['format']}")
    entries = []
    for row in fields["linear"]:
        if row["epilogue"] not in EPILOGUES:
            raise ValueError(f"expected an epilogue of {', '.join(EPILOGUES)}, found {row['epilogue']}")
        if not 0 <= row["run"] < len(fields["runs"]):
            raise ValueError(f"run {row['run']} of {len(fields['runs'])}")
        schedules = []
        for item in row["schedules"]:
            config = {name: value for name, value in item.items() if name not in ("max_tokens", "us")}
            config["element_bytes"] = row.get("element_bytes", 2)
            schedules.append((item["max_tokens"], from_json(config), float(item["us"])))
        if not schedules or [last for last, *_ in schedules] != sorted({last for last, *_ in schedules}):
            raise ValueError(f"expected ascending token counts for {row['epilogue']} {row['n']} x {row['k']}")
        problem = LinearProblem(row["n"], row["k"], row["epilogue"], element_bytes=row.get("element_bytes", 2))
        entries.append(Entry(problem, tuple(schedules), row["run"]))
    return ScheduleTable(fields["arch"], tuple(fields["runs"]), tuple(entries))
