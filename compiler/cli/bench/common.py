"""What all kinds of `llmc bench` with requests share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llmc.compiler.cli.arguments import add_option
from llmc.compiler.cli.bench.plotting import add_plot_option
from llmc.errors import OptionError


def add_report_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("report")
    add_option(group, "json", "output-json", type=Path, metavar="FILE", help="write the figures to a file")
    add_plot_option(group)
    add_option(group, "quiet", action="store_true", help="no progress on stderr")


def check_counts(arguments: argparse.Namespace, **least: int) -> None:
    """Raises OptionError for an option below its least value."""
    for name, low in least.items():
        value = getattr(arguments, name)
        if value is not None and value < low:
            raise OptionError(f"--{name}: expected {low} or more, found {value}")


def settings(arguments: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    """What the figures depend on; files by name."""
    chosen = {name: getattr(arguments, name, None) for name in names}
    return {k: v.name if isinstance(v, Path) else v for k, v in chosen.items() if v not in (None, [])}
