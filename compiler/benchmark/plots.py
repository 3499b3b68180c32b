"""Pictures of reports: self-contained, no script and no style from elsewhere."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pygal
from pygal.style import Style

from llmc.compiler.benchmark.summary import TITLES

if TYPE_CHECKING:
    from llmc.compiler.benchmark.report import Report

_STYLE = Style(
    background="white", plot_background="white", foreground="#333", foreground_strong="#111",
    foreground_subtle="#777", guide_stroke_color="#ddd", major_guide_stroke_color="#ccc",
    colors=("#2563eb", "#ea580c", "#16a34a", "#9333ea", "#0891b2", "#be123c"),
    font_family="system-ui, sans-serif", title_font_size=18, legend_font_size=13, label_font_size=12,
    major_label_font_size=12, value_font_size=11,
)  # fmt: skip
# pygal's default loads a script for tooltips from the network.
_SHARED: dict[str, Any] = {
    "style": _STYLE,
    "js": (),
    "width": 900,
    "height": 420,
    "legend_at_bottom": True,
    "zero": 0,
    "include_x_axis": True,
}
_PERCENTILES = ("p50", "p90", "p99")
_HEAD = """\
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>llmc bench</title>
<style>
body { font-family: system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
figure { margin: 1rem 0 }
svg { max-width: 100%; height: auto }
</style>"""
_WIDTH, _HEIGHT = _SHARED["width"], _SHARED["height"]


def charts(reports: Sequence[Report], names: Sequence[str]) -> list[Any]:
    """Of a sweep latencies over the rate; else latencies and rates of each run."""
    if all(report["kind"] == "sweep" for report in reports):
        return [_over_rate(reports, names, name) for name in TITLES]
    return [*(_bars(reports, names, name) for name in TITLES), _throughput(reports, names)]


def _runs(reports: Sequence[Report], names: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """(label, figures)"""
    return [
        (" ".join(filter(None, (name, run["name"]))), run["figures"])
        for report, name in zip(reports, names, strict=True)
        for run in report["runs"]
    ]


def _bars(reports: Sequence[Report], names: Sequence[str], latency: str) -> Any:
    chart = pygal.Bar(title=f"{TITLES[latency]}, ms", **_SHARED)
    chart.x_labels = _PERCENTILES
    for label, figures in _runs(reports, names):
        values = figures["latency"].get(latency, {})
        chart.add(label, [_milliseconds(values.get(one)) for one in _PERCENTILES])
    return chart


def _throughput(reports: Sequence[Report], names: Sequence[str]) -> Any:
    chart = pygal.Bar(title="output tokens/s", **_SHARED)
    for label, figures in _runs(reports, names):
        chart.add(label, [round(figures["output_tokens_per_second"], 2)])
    return chart


def _over_rate(reports: Sequence[Report], names: Sequence[str], latency: str) -> Any:
    chart = pygal.XY(title=f"{TITLES[latency]}, ms, over requests/s", x_title="requests/s", **_SHARED)
    for report, name in zip(reports, names, strict=True):
        runs = sorted(report["runs"], key=lambda run: run["rate"])
        for percentile in _PERCENTILES:
            points = [(run["rate"], _milliseconds(run["figures"]["latency"][latency].get(percentile))) for run in runs]
            chart.add(" ".join(filter(None, (name, percentile))), [one for one in points if one[1] is not None])
    return chart


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(1e3 * seconds, 3)


def _rendered(chart: Any) -> str:
    """One <svg>, without the comments and the script that pygal writes into it."""
    text = chart.render(disable_xml_declaration=True)
    return re.sub(r"<!--.*?-->|<script.*?</script>", "", text, flags=re.DOTALL)


def as_svg(reports: Sequence[Report], names: Sequence[str]) -> str:
    """All charts below each other."""
    drawn = [_rendered(chart) for chart in charts(reports, names)]
    placed = [f'<svg y="{i * _HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}">{one}</svg>' for i, one in enumerate(drawn)]
    size = f'width="{_WIDTH}" height="{len(drawn) * _HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(placed)}</svg>\n'


def as_html(reports: Sequence[Report], names: Sequence[str]) -> str:
    """The charts, and what was run on what."""
    facts = []
    for report, name in zip(reports, names, strict=True):
        where = ", ".join(str(value) for value in report["device"].values())
        lines = (name, " ".join(report["command"]), f"llmc {report['llmc']} on {where}")
        facts.append("<br>".join(html.escape(line) for line in lines if line))
    drawn = "".join(f"<figure>{_rendered(chart)}</figure>" for chart in charts(reports, names))
    body = "".join(f"<p>{one}</p>" for one in facts) + drawn
    return f"<!doctype html><html lang=en><head>{_HEAD}</head><body><h1>llmc bench</h1>{body}</body></html>\n"
