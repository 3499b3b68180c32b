"""Figures of a run for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llmc.compiler.benchmark.summary import TITLES

if TYPE_CHECKING:
    from rich.console import RenderableType

_COLUMNS = ("mean", "p50", "p90", "p99", "max")


def run_tables(run: Mapping[str, Any]) -> RenderableType:
    """Rates, then latencies, then what engine and GPU did."""
    from rich.console import Group

    parts = [_pairs(run["name"], rates(run)), _latencies(run["figures"]["latency"]), errors_table(run)]
    return Group(*(part for part in parts if part is not None))


def rates(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, value) of everything but latencies."""
    figures = run["figures"]
    failed = f", {figures['failed']:,} failed" if figures["failed"] else ""
    rows = [
        ("requests", f"{figures['requests']:,}{failed} in {figures['seconds']:.2f} s"),
        ("requests/s", f"{figures['requests_per_second']:,.2f}"),
        ("output tokens/s", f"{figures['output_tokens_per_second']:,.1f}"),
        ("tokens/s, prompts included", f"{figures['tokens_per_second']:,.1f}"),
        ("tokens in, out", f"{figures['input_tokens']:,}, {figures['output_tokens']:,}"),
    ]
    if goodput := figures.get("goodput"):
        limits = ", ".join(f"{TITLES[name]} < {1e3 * s:g} ms" for name, s in goodput["objectives"].items())
        rows.append((f"requests/s with {limits}", f"{goodput['requests_per_second']:,.2f} ({goodput['share']:.1%})"))
    if short := figures.get("short_answers"):
        rows.append(("answers shorter than asked for", f"{short:,}"))
    if late := run.get("late", {}).get("p99"):
        rows.append(("sent late by, p99", f"{1e3 * late:,.1f} ms"))
    rows += _engine_rows(run.get("engine", {}))
    for name, what in (("utilization_percent", "GPU load, %"), ("memory_mib", "GPU memory, MiB"),
                       ("power_watts", "GPU power, W")):  # fmt: skip
        if found := run.get("gpu", {}).get(name):
            rows.append((f"{what}, mean, peak", f"{found['mean']:,.0f}, {found['peak']:,.0f}"))
    return rows


def _engine_rows(engine: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Only of what is known."""
    rows = []
    if "kv_used_mean" in engine:
        rows.append(("KV cache used, mean, peak", f"{engine['kv_used_mean']:.1%}, {engine['kv_used_peak']:.1%}"))
    if "running_peak" in engine and "waiting_peak" in engine:
        rows.append(("requests running, waiting, peak", f"{engine['running_peak']:,g}, {engine['waiting_peak']:,g}"))
    if "tokens_per_step" in engine:
        rows.append(("steps, tokens each", f"{engine['steps']:,g}, {engine['tokens_per_step']:,.1f}"))
    if "preemptions" in engine:
        rows.append(("preemptions", f"{engine['preemptions']:,g}"))
    if looked_up := engine.get("prompt_tokens_looked_up"):
        rows.append(("prompts found in the KV cache", f"{engine['prompt_tokens_reused'] / looked_up:.1%}"))
    return rows


def errors_table(run: Mapping[str, Any]) -> RenderableType | None:
    """Each kind of failure with its count and an example; None without failures."""
    from rich.markup import escape
    from rich.table import Table

    errors = run["figures"].get("errors")
    if not errors:
        return None
    table = Table("failed", "how", "the first one said")
    table.columns[0].justify = "right"
    for kind, found in errors.items():
        table.add_row(f"{found['count']:,}", escape(kind), escape(found["example"]))
    return table


def _pairs(title: str, rows: list[tuple[str, str]]) -> RenderableType:
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def _latencies(latency: Mapping[str, Mapping[str, float]]) -> RenderableType:
    from rich.table import Table

    table = Table("ms", *_COLUMNS)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, title in TITLES.items():
        if values := latency.get(name):
            table.add_row(title, *(f"{1e3 * values[column]:,.2f}" for column in _COLUMNS))
    return table
