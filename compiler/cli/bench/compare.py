"""Shows two reports side by side: what was different, and how each figure changed."""

from __future__ import annotations

import argparse
from pathlib import Path

from llmc.compiler.cli.bench.plotting import add_plot_option, write_plot


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="A.json", type=Path, help="a file of --json")
    parser.add_argument("after", metavar="B.json", type=Path, help="another one; changes are from A to B")
    add_plot_option(parser)


def run(arguments: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.markup import escape

    from llmc.compiler.benchmark.compare import comparison_table, differences, figures, pairs
    from llmc.compiler.benchmark.report import read_report

    left, right = read_report(arguments.before), read_report(arguments.after)
    names = [arguments.before.name, arguments.after.name]
    if names[0] == names[1]:
        names = [str(arguments.before), str(arguments.after)]
    console = Console()
    tables = [comparison_table(one["name"], names, figures(one, other)) for one, other in pairs(left, right)]
    for name, before, after in differences(left, right):
        console.print(f"[yellow]{escape(name)}[/]: {escape(str(before))} → {escape(str(after))}", highlight=False)
    for table in tables:
        console.print(table)
    write_plot(arguments.plot, [left, right], names)
    return 0
