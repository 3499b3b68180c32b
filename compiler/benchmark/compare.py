"""Reports side by side: what differs in their settings, and figure by figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llmc.compiler.benchmark.summary import TITLES
from llmc.errors import OptionError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from llmc.compiler.benchmark.report import Report, Run

#: What differs by design: a comparison is about something else.
_EXPECTED = ("runs", "command", "format")


@dataclass(frozen=True)
class Figure:
    """One figure of two runs; `better` is the sign of a change for the better."""

    name: str
    before: float
    after: float
    better: int
    unit: str = ""

    @property
    def change(self) -> float | None:
        """Relative; None where there was nothing before."""
        return self.after / self.before - 1 if self.before else None


def differences(left: Report, right: Report) -> list[tuple[str, Any, Any]]:
    """(name, left, right) of everything around the runs that is not equal."""
    flat_left, flat_right = dict(_flat("", left)), dict(_flat("", right))
    names = dict.fromkeys([*flat_left, *flat_right])
    return [
        (name, flat_left.get(name), flat_right.get(name))
        for name in names
        if flat_left.get(name) != flat_right.get(name)
    ]


def _flat(prefix: str, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if not prefix and name in _EXPECTED:
            continue
        if isinstance(inner, Mapping):
            yield from _flat(f"{prefix}{name}.", inner)
        else:
            yield prefix + name, inner


def pairs(left: Report, right: Report) -> list[tuple[Run, Run]]:
    """Runs of the same name; two single runs belong together whatever their names. Raises OptionError."""
    if len(left["runs"]) == len(right["runs"]) == 1:
        return [(left["runs"][0], right["runs"][0])]
    by_name = {run["name"]: run for run in right["runs"]}
    found = [(run, by_name[run["name"]]) for run in left["runs"] if run["name"] in by_name]
    if not found:
        names = [", ".join(run["name"] for run in report["runs"]) or "none" for report in (left, right)]
        raise OptionError(f"expected runs of the same name in both reports, found {names[0]} and {names[1]}")
    return found


def figures(left: Run, right: Run) -> list[Figure]:
    """What both runs have. Raises OptionError for reports of `llmc bench steps`, which have none of these."""
    try:
        before, after = left["figures"], right["figures"]
    except KeyError:
        raise OptionError("expected reports of llmc bench throughput, latency, serve or sweep") from None
    found = [
        Figure(name.replace("_", " ").replace(" per ", "/").replace("/second", "/s"), before[name], after[name], 1)
        for name in ("requests_per_second", "output_tokens_per_second", "tokens_per_second")
        if name in before and name in after
    ]
    if "goodput" in before and "goodput" in after and before["goodput"]["objectives"] == after["goodput"]["objectives"]:
        rates = [one["goodput"]["requests_per_second"] for one in (before, after)]
        found.append(Figure("goodput, requests/s", rates[0], rates[1], 1))
    for name, title in TITLES.items():
        for percentile in ("p50", "p90", "p99"):
            values = [one["latency"].get(name, {}).get(percentile) for one in (before, after)]
            if None not in values:
                found.append(Figure(f"{title}, {percentile}", 1e3 * values[0], 1e3 * values[1], -1, " ms"))
    if before["failed"] or after["failed"]:
        found.append(Figure("failed requests", before["failed"], after["failed"], -1))
    return found


def comparison_table(title: str, names: Sequence[str], rows: Sequence[Figure]) -> RenderableType:
    from rich.markup import escape
    from rich.table import Table

    table = Table("", *(escape(name) for name in names), "change", title=escape(title), title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        change = row.change
        colour = "dim" if not change or abs(change) < 0.01 else "green" if change * row.better > 0 else "red"
        shown = "" if change is None else f"[{colour}]{change:+.1%}[/]"
        table.add_row(row.name, f"{row.before:,.2f}{row.unit}", f"{row.after:,.2f}{row.unit}", shown)
    return table
