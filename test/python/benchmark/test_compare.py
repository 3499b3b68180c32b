"""Two reports side by side, and pictures of reports."""

from __future__ import annotations

import copy
import json
import re
import xml.etree.ElementTree as ET

import pytest

from llmc.compiler.benchmark.compare import differences, figures, pairs
from llmc.compiler.benchmark.plots import as_html, as_svg
from llmc.compiler.benchmark.records import Record
from llmc.compiler.benchmark.summary import summarize
from llmc.compiler.cli import main


def report(speed: float = 1.0, names: tuple[str, ...] = ("128/128x2",), **more):
    """Of two requests of three tokens, `speed` times as fast as once."""
    runs = []
    for name in names:
        records = []
        for start in (0.0, 1.0):
            moments = [start + step / speed for step in (0.5, 0.6, 0.8)]
            record = Record(4, sent=start, arrivals=[(moment, 1) for moment in moments], finished=moments[-1])
            record.output_tokens = record.asked_tokens = 3
            records.append(record)
        runs.append({"name": name, "figures": summarize(records, 2 / speed)})
    base = {"format": "llmc-bench/1", "kind": "serve", "command": ["llmc", "bench", "serve"], "llmc": "1",
            "device": {"name": "chip"}, "settings": {"seed": 0}}  # fmt: skip
    return {**base, **more, "runs": runs}


def test_figures():
    before, after = report(), report(speed=2.0)
    [(left, right)] = pairs(before, after)
    found = {one.name: one for one in figures(left, right)}
    assert found["output tokens/s"].change == pytest.approx(1.0) and found["output tokens/s"].better == 1
    ttft = found["time to first token, p50"]
    assert (ttft.before, ttft.after) == (pytest.approx(500), pytest.approx(250))
    assert ttft.change == pytest.approx(-0.5) and ttft.better == -1


def test_differences_are_all_but_the_figures():
    left = report(settings={"seed": 0, "too_long": "skip"})
    right = report(speed=3, device={"name": "other"}, settings={"seed": 1})
    assert set(differences(left, right)) == {
        ("device.name", "chip", "other"), ("settings.seed", 0, 1), ("settings.too_long", "skip", None),
    }  # fmt: skip


def test_runs_are_paired_by_name():
    left, right = report(names=("a", "b", "c")), report(names=("c", "x", "a"))
    assert [(one["name"], other["name"]) for one, other in pairs(left, right)] == [("a", "a"), ("c", "c")]
    assert len(pairs(report(names=("a",)), report(names=("b",)))) == 1


def test_the_command(tmp_path, capsys):
    files = []
    for name, content in (("a.json", report()), ("b.json", report(speed=2, device={"name": "other"}))):
        files.append(tmp_path / name)
        files[-1].write_text(json.dumps(content))
    plot = tmp_path / "both.svg"
    assert main(["bench", "compare", *map(str, files), "--plot", str(plot)]) == 0
    shown = capsys.readouterr().out
    assert "device.name: chip → other" in shown and "+100.0%" in shown and "-50.0%" in shown
    assert plot.read_text().startswith("<svg")


def test_files_that_are_no_reports(tmp_path, capsys):
    good = tmp_path / "good.json"
    good.write_text(json.dumps(report()))
    steps = report()
    del steps["runs"][0]["figures"]
    for content, message in (
        ("{", "expected the JSON file of an `llmc bench --json`"),
        ("[]", "expected a report of format llmc-bench/1"),
        (json.dumps(steps), "expected reports of llmc bench throughput, latency, serve or sweep"),
        (json.dumps(report(names=("x", "y"))), "expected runs of the same name in both reports"),
        (json.dumps({**report(), "runs": [5]}), "expected a report of format"),
    ):
        bad = tmp_path / "bad.json"
        bad.write_text(content)
        assert main(["bench", "compare", str(good), str(bad)]) == 2
        assert message in capsys.readouterr().err
    assert main(["bench", "compare", str(good), str(tmp_path / "none.json")]) == 2


@pytest.mark.parametrize("kind", ["serve", "sweep"])
def test_pictures_ask_nobody(kind):
    one = report(names=("<a> & b", "c"), kind=kind)
    for rate, run in enumerate(one["runs"], 1):
        run["rate"] = rate
    other = copy.deepcopy(one)
    picture = as_svg([one, other], ["A", "B"])
    root = ET.fromstring(picture)
    titles = [node.text for node in root.iter() if "title" in node.get("class", "").split()]
    assert len([title for title in titles if title and "time to first token" in title]) == 1
    page = as_html([one], [""])
    for text in (picture, page):
        assert not re.search(r"<script|<link|@import|(?:href|src)=", text.replace('xlink:href="#', ""))
        assert "<a>" not in text
    assert "llmc bench serve" in page
