"""Measures how fast engines and servers are. `llmc bench ENGINE ...` is short for `llmc bench steps ENGINE ...`."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence

from llmc.compiler.cli.arguments import HelpFormatter

#: What to measure -> one line for the help; each is a module of llmc.compiler.cli.bench.
KINDS = {
    "steps": "time of a decode step and of a prefill; with --profile of each kernel",
    "throughput": "tokens/s of an engine under many requests at once",
    "latency": "time to the first token and between tokens, requests one after the other",
    "serve": "what clients of a server see: latencies and tokens/s under load",
    "sweep": "the highest rate of requests at which a server keeps latency limits",
    "compare": "two reports side by side",
}


def spelled_out(words: Sequence[str]) -> list[str]:
    """With "steps" where no kind is named."""
    if not words or words[0] in (*KINDS, "-h", "--help"):
        return list(words)
    return ["steps", *words]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", metavar="WHAT", required=True)
    for name, summary in KINDS.items():
        module = importlib.import_module(f"llmc.compiler.cli.bench.{name}")
        one = kinds.add_parser(
            name, help=summary, description=module.__doc__, formatter_class=HelpFormatter, allow_abbrev=False
        )
        module.add_arguments(one)
        one.set_defaults(run_kind=module.run)


def run(arguments: argparse.Namespace) -> int:
    return int(arguments.run_kind(arguments))
