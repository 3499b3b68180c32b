"""Measures which schedules of the linears are fastest, for `llmc compile --schedules`.

Candidates are compiled where there is no GPU, timed where there is one, and the fastest become a table.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from llmc.compiler.cli.arguments import HelpFormatter, add_option
from llmc.compiler.cli.console import make_progress
from llmc.errors import CompileError, OptionError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    steps = parser.add_subparsers(dest="step", metavar="STEP", required=True)

    def add(name: str, summary: str) -> argparse.ArgumentParser:
        return steps.add_parser(
            name, help=summary, description=summary, formatter_class=HelpFormatter, allow_abbrev=False
        )

    one = add("compile", "compile candidates for the linears of models; no GPU is needed")
    one.add_argument("models", metavar="MODEL", type=Path, nargs="*",
                     help="Hugging Face folder (a config.json is enough) or .gguf file")  # fmt: skip
    add_option(one, "linear", action="append", default=[], metavar="NxK:EPILOGUE",
               help="a linear by itself; the epilogue is 16bit, f32, residual or glu; "
                    "behind it :f8 for 8-bit floats")  # fmt: skip
    add_option(one, "output", short="o", type=Path, required=True, metavar="FOLDER", help="new folder of candidates")
    add_option(one, "target", default="sm_90", help="what to compile for: sm_90")
    add_option(one, "tokens", type=int, nargs="+", metavar="T",
               help="last token counts of the ranges to tune (default: all that `llmc compile` makes)")  # fmt: skip
    add_option(one, "most", type=int, default=5, help="the most tiles to try for a linear and a range")
    add_option(one, "quiet", short="q", action="store_true", help="no progress")

    one = add("time", "check and time the candidates of a folder on this machine's GPU")
    one.add_argument("folder", metavar="FOLDER", type=Path, help="written by `llmc tune compile`")
    add_option(one, "output", short="o", type=Path, required=True, metavar="TIMES.json", help="file of times to write")
    add_option(one, "tokens", type=int, nargs="+", default=[], metavar="T", help="only these token counts")
    add_option(one, "rounds", type=int, default=5, help="measurements of each candidate; the median counts")
    add_option(one, "torch", action="store_true", help="time torch's product in the same rounds")
    add_option(one, "device", type=int, default=0, help="number of the GPU")

    one = add("table", "pick the fastest schedules out of files of times")
    one.add_argument("times", metavar="TIMES.json", type=Path, nargs="+", help="written by `llmc tune time`")
    add_option(one, "output", short="o", type=Path, required=True, metavar="TABLE.json", help="table to write")
    add_option(one, "base", type=Path, metavar="TABLE.json",
               help="a table whose other entries are kept (default: none)")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    return {"compile": _compile, "time": _time, "table": _table}[arguments.step](arguments)


def _compile(arguments: argparse.Namespace) -> int:
    for name, values in (("tokens", arguments.tokens or [1]), ("most", [arguments.most])):
        if any(value < 1 for value in values):
            raise OptionError(f"--{name} takes numbers of 1 or more, found {values}")
    if not arguments.models and not arguments.linear:
        raise OptionError("nothing to tune: name a MODEL, or a linear with --linear NxK:EPILOGUE")
    from llmc.codegen.sm90.linear_schedule import RANGES
    from llmc.compiler.tuning.candidates import compile_candidates
    from llmc.compiler.tuning.problems import check_target, name_of, of_model, parse

    check_target(arguments.target)
    problems = [parse(text) for text in arguments.linear]
    for model in arguments.models:
        problems += of_model(model, arguments.target)
    problems = list(dict.fromkeys(problems))
    count = compile_candidates(
        problems, arguments.tokens or RANGES, arguments.output, arguments.most, make_progress(arguments.quiet)
    )
    print(f"{arguments.output}: {count} candidates for {', '.join(map(name_of, problems))}")
    return 0


def _time(arguments: argparse.Namespace) -> int:
    if arguments.rounds < 1:
        raise OptionError(f"--rounds {arguments.rounds}: expected 1 or more")
    from llmc.compiler.tuning.timing import time_candidates

    def keep(report: dict[str, Any]) -> None:
        # After each problem, so that a later fault loses nothing.
        _write(arguments.output, json.dumps(report, indent=1) + "\n")

    report = time_candidates(
        arguments.folder,
        device=arguments.device,
        tokens=arguments.tokens,
        rounds=arguments.rounds,
        torch_too=arguments.torch,
        log=lambda line: print(line, flush=True),
        keep=keep,
    )
    checks = [check for problem in report["problems"] for check in problem["checks"]]
    wrong = sum(not check["passed"] for check in checks)
    print(f"{arguments.output}: {len(checks)} checks, {wrong} failed")
    return 1 if wrong else 0


def _table(arguments: argparse.Namespace) -> int:
    from llmc.codegen.sm90 import schedule_table
    from llmc.compiler.tuning.table import load_times, make_table

    table = make_table([load_times(path) for path in arguments.times])
    if arguments.base is not None:
        base = schedule_table.load(arguments.base)
        if base.arch != table.arch:
            raise CompileError(f"{arguments.base} is for {base.arch}, the times are for {table.arch}")
        table = base.merged(table)
    _write(arguments.output, table.to_json())
    print(f"{arguments.output}: schedules of {len(table.entries)} linears for {table.arch}")
    return 0


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CompileError(f"cannot write {path}: {error.strerror}") from None
