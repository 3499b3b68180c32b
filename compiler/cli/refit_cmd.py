"""Binds the weights of a checkpoint to a stripped engine, or to one that has others."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from llmc.compiler.cli.arguments import add_option
from llmc.compiler.cli.console import make_progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("engine", metavar="ENGINE", type=Path, help="engine folder")
    parser.add_argument("model", metavar="MODEL", help="Hugging Face folder or .gguf file of the same configuration")
    add_option(parser, "output", short="o", type=Path, metavar="ENGINE",
               help="write a new engine instead of changing this one")  # fmt: skip
    add_option(parser, "force", action="store_true", help="replace weights that are already bound")
    add_option(parser, "dequantize", action="store_true",
               help="of a checkpoint that is quantized already: take the values of its layers,\n"
                    "in place of their codes")  # fmt: skip
    add_option(parser, "quiet", short="q", action="store_true", help="no progress, no summary")


def run(arguments: argparse.Namespace) -> int:
    from llmc.compiler.refit import refit

    start = time.perf_counter()
    summary = refit(
        arguments.engine,
        arguments.model,
        output=arguments.output,
        force=arguments.force,
        progress=make_progress(arguments.quiet),
        dequantize=arguments.dequantize,
    )
    for warning in summary.warnings:
        print(f"llmc: warning: {warning}", file=sys.stderr)
    if not arguments.quiet:
        print(f"{summary} in {time.perf_counter() - start:.1f} s", file=sys.stderr)
    return 0
