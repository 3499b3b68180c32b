"""Compiles the schedules that are worth a measurement. Needs no GPU."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llmc
from llmc.compiler.progress import SILENT, Progress
from llmc.compiler.tuning.problems import kernel_text, name_of
from llmc.errors import CompileError, InternalError

if TYPE_CHECKING:
    from llmc.codegen.sm90.linear_schedule import LinearProblem, Schedule

CANDIDATES = "candidates.json"
FORMAT = 1


def compile_candidates(
    problems: Sequence[LinearProblem],
    tokens: Sequence[int],
    folder: Path,
    most: int,
    progress: Progress = SILENT,
) -> int:
    """Writes one cubin for each candidate and candidates.json; returns how many candidates there are.

    tokens: last token counts of the ranges to tune. most: the most schedules for a problem and a range, those
    that the cost model holds for the fastest. A schedule that ptxas refuses is no candidate.
    """
    from llmc.codegen.chips import HOPPER

    wanted = {problem: dict(_worth(problem, tokens, most, HOPPER)) for problem in problems}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise CompileError(f"{folder} is not empty: name a new folder for the candidates")
    except OSError as error:
        raise CompileError(f"cannot write to {folder}: {error.strerror}") from None
    rows, count = [], 0
    with progress.task(
        "compiling candidates", sum(len(schedules) for schedules in wanted.values()), "kernels"
    ) as advance:
        for problem, schedules in wanted.items():
            built: list[dict[str, Any]] = []
            for schedule, counts in schedules.items():
                if (row := _compile(problem, schedule, HOPPER, folder, len(built))) is not None:
                    built.append({**row, "tokens": counts})
                advance(1)
            count += len(built)
            fields = {
                "n": problem.n, "k": problem.k, "epilogue": problem.epilogue, "element_bytes": problem.element_bytes,
            }  # fmt: skip
            rows.append({"name": name_of(problem), **fields, "candidates": built})
    head = {"format": FORMAT, "arch": HOPPER.arch, "llmc": llmc.__version__, "commit": _commit()}
    (folder / CANDIDATES).write_text(json.dumps({**head, "problems": rows}, indent=1) + "\n", encoding="utf-8")
    return count


def _worth(problem: LinearProblem, tokens: Sequence[int], most: int, chip: Any) -> Iterator[tuple[Schedule, list[int]]]:
    """Schedules, each with the token counts at which it is to be timed."""
    from llmc.codegen.sm90 import linear_schedule

    found: dict[Schedule, list[int]] = {}
    for count in sorted(set(tokens)):
        for schedule in linear_schedule.worth_timing(problem, count, most, chip):
            found.setdefault(schedule, []).append(count)
    yield from found.items()


def _compile(problem: LinearProblem, schedule: Schedule, chip: Any, folder: Path, number: int) -> dict[str, Any] | None:
    from mlir import ir

    from llmc.codegen.gpu.lowering import lower
    from llmc.codegen.sm90 import linear_large, linear_schedule, linear_small
    from llmc.dialects import register

    suffix = f"_{number}"
    with register(ir.Context()), ir.Location.unknown():
        module = ir.Module.parse(kernel_text(problem))
        op = module.body.operations[0]
        if isinstance(schedule, linear_small.Config):
            kernel, grid, arguments = linear_small.build(op, schedule, suffix, chip)
        else:
            kernel, grid, arguments = linear_large.build(op, schedule, suffix, chip)
        name = kernel.name
        try:
            entry = lower(kernel, name).entry
        except InternalError as error:
            if "ptxas" not in str(error):
                raise
            print(f"{name_of(problem)}: left out {schedule}: {str(error).splitlines()[1]}")
            return None
    file = f"{name}.cubin"
    (folder / file).write_bytes(entry.code.data)
    launch = {"kernel": entry.description(), "cubin": file, "grid": list(grid), "args": list(arguments)}
    return {"schedule": linear_schedule.to_json(schedule), "launch": launch}


def _commit() -> str | None:
    """Of the checkout that llmc runs from; None where it is installed."""
    source = Path(__file__).resolve().parent
    git = ["git", "-C", str(source), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        result = subprocess.run(git, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return result.stdout.strip() or None
