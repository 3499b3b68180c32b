"""From times to the table of schedules that `llmc compile` reads."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llmc.codegen.sm90.linear_schedule import LinearProblem, Schedule, from_json
from llmc.codegen.sm90.schedule_table import Entry, ScheduleTable, order
from llmc.errors import CompileError

FORMAT = 1
NOISE = 1.01
"""Schedules this close to the fastest count as equal: the one of the range before is kept, which saves a kernel."""

Times = dict[Schedule, list[float]]


def load_times(path: Path) -> dict[str, Any]:
    """A report of `llmc tune time`. Raises CompileError."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        if fields["format"] != FORMAT or "problems" not in fields:
            raise ValueError(f"expected format {FORMAT}")
    except OSError as error:
        raise CompileError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise CompileError(f"{path} holds no times ({error}): `llmc tune time FOLDER -o FILE` writes them") from None
    return fields


def make_table(reports: Sequence[dict[str, Any]]) -> ScheduleTable:
    """The fastest schedule of each problem and range; reports of one problem are taken together, by medians.

    Raises CompileError for reports of different architectures, and for a problem without a correct candidate.
    """
    archs = sorted({report["arch"] for report in reports})
    if len(archs) != 1:
        raise CompileError(f"expected times of one architecture, found {', '.join(archs)}")
    runs = [report["run"] for report in reports]
    found: dict[LinearProblem, dict[int, Times]] = {}
    last_run: dict[LinearProblem, int] = {}
    for number, report in enumerate(reports):
        for fields in report["problems"]:
            problem = LinearProblem(
                fields["n"], fields["k"], fields["epilogue"], element_bytes=fields.get("element_bytes", 2)
            )
            last_run[problem] = number
            schedules = [from_json(s) for s in fields["schedules"]]
            for row in fields["times"]:
                times = found.setdefault(problem, {}).setdefault(row["tokens"], {})
                for i, us in row["us"].items():
                    times.setdefault(schedules[int(i)], []).append(us)
    entries = []
    for problem, by_tokens in found.items():
        entries.append(Entry(problem, tuple(_pick(by_tokens)), last_run[problem]))
    missing = [p for p in last_run if p not in found]
    if missing:
        raise CompileError(f"no correct candidate was timed for {', '.join(map(str, missing))}")
    entries.sort(key=lambda e: order(e.problem))
    return ScheduleTable(archs[0], tuple(runs), tuple(entries))


def _pick(by_tokens: dict[int, Times]) -> list[tuple[int, Schedule, float]]:
    picked: list[tuple[int, Schedule, float]] = []
    for tokens in sorted(by_tokens):
        # Schedules that only some of the runs have timed do not compare with the others.
        most = max(map(len, by_tokens[tokens].values()))
        medians = {s: statistics.median(us) for s, us in by_tokens[tokens].items() if len(us) == most}
        best = min(medians, key=lambda s: medians[s])
        before = picked[-1][1] if picked else None
        if before is not None and medians.get(before, float("inf")) <= medians[best] * NOISE:
            best = before
        picked.append((tokens, best, medians[best]))
    return picked
