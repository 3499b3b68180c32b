"""The option --plot."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from llmc.compiler.cli.arguments import add_option
from llmc.errors import OptionError

if TYPE_CHECKING:
    from llmc.compiler.benchmark.report import Report


def add_plot_option(group: argparse._ActionsContainer) -> None:
    add_option(
        group, "plot", type=_plot_file, metavar="FILE", help="draw the figures: a page (.html) or a picture (.svg)"
    )


def _plot_file(text: str) -> Path:
    path = Path(text)
    if path.suffix not in (".html", ".svg"):
        raise argparse.ArgumentTypeError(f"expected a name that ends in .html or .svg, found {text}")
    return path


def write_plot(path: Path | None, reports: Sequence[Report], names: Sequence[str] = ("",)) -> None:
    if path is None:
        return
    from llmc.compiler.benchmark.report import write_text

    try:
        from llmc.compiler.benchmark.plots import as_html, as_svg
    except ImportError as error:
        raise OptionError(f"--plot needs pygal: {error}") from None
    write_text(path, as_html(reports, names) if path.suffix == ".html" else as_svg(reports, names))
