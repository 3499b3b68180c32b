"""Progress bars and colours on a terminal; plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from llmc.compiler.progress import Advance, Progress


class PlainProgress(Progress):
    """One line on stderr when a task ends, with its time: for logs."""

    @contextlib.contextmanager
    def task(self, label: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        start = time.perf_counter()
        yield lambda amount: None
        print(f"{label}: {time.perf_counter() - start:.1f} s", file=sys.stderr)


class BarProgress(Progress):
    """A bar for each task, which becomes a line with its time at the end."""

    @contextlib.contextmanager
    def task(self, label: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        from rich import progress as bars
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
        columns = [bars.SpinnerColumn(), bars.TextColumn("{task.description}"), bars.BarColumn()]
        columns += [bars.DownloadColumn()] if unit == "bytes" else [bars.MofNCompleteColumn()]
        columns += [bars.TimeElapsedColumn()]
        start = time.perf_counter()
        with bars.Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task(label, total=total)
            yield lambda amount: progress.advance(task, amount)
        console.print(f"[green]✓[/] {label} [dim]{time.perf_counter() - start:.1f} s[/]")


def make_progress(quiet: bool) -> Progress:
    """What fits stderr."""
    if quiet:
        return Progress()
    return BarProgress() if sys.stderr.isatty() else PlainProgress()
