"""The search for a rate: on servers that are formulas, and on a real one."""

from __future__ import annotations

import asyncio
import json

import pytest

from llmc.compiler.benchmark.sweep import find_rate, missed
from llmc.compiler.cli import main


def search(
    limit: float, start: float, tolerance: float = 0.05, most_runs: int = 50
) -> tuple[float | None, list[float]]:
    """On a server that keeps its limits up to the rate `limit`."""
    tried: list[float] = []

    async def attempt(rate: float) -> str:
        tried.append(rate)
        return "" if rate <= limit else "too slow"

    return asyncio.run(find_rate(attempt, start, tolerance, most_runs)), tried


@pytest.mark.parametrize("limit", [0.013, 0.9, 1, 7.3, 1000])
@pytest.mark.parametrize("start", [0.1, 1, 60])
def test_the_rate_is_found(limit, start):
    found, tried = search(limit, start)
    assert limit / 1.051 <= found <= limit
    assert found in tried and len(tried) < 30


def test_the_search_ends():
    assert search(0, 1, most_runs=5) == (None, [1, 0.5, 0.25, 0.125, 0.0625])
    assert search(1e9, 1, most_runs=4) == (8, [1, 2, 4, 8])


def test_what_misses_a_limit():
    figures = {"failed": 0, "latency": {"ttft": {"p50": 0.1, "p99": 0.7}, "tpot": {}}}
    assert missed(figures, {"ttft": 0.7, "tpot": 0.001}, "p99") == ""
    assert missed(figures, {"ttft": 0.6}, "p99") == "time to first token, p99: 700.0 ms"
    assert missed(figures, {"ttft": 0.6}, "p50") == ""
    assert missed({**figures, "failed": 3}, {"ttft": 9}, "p99") == "3 requests failed"


def test_a_server(serve, tmp_path, capsys):
    """A limit that any machine keeps: the sweep doubles the rate as often as it may."""
    server = serve()
    report, plot = tmp_path / "sweep.json", tmp_path / "sweep.html"
    words = ["--num_requests", "6", "--input_len", "5", "--output_len", "4", "--limit", "ttft:60000", "e2e:60000"]
    search = ["--start_rate", "50", "--most_runs", "3", "--json", str(report), "--plot", str(plot), "--quiet"]
    assert main(["bench", "sweep", server.url, *words, *search]) == 0
    found = json.loads(report.read_text())
    assert [run["rate"] for run in found["runs"]] == [50, 100, 200] and found["highest_rate"] == 200
    assert all(run["missed"] == "" and run["figures"]["requests"] == 6 for run in found["runs"])
    assert "highest rate with ttft p99 < 60000 ms, e2e p99 < 60000 ms: 200 requests/s" in capsys.readouterr().out
    assert plot.read_text().count("<svg") == 4


def test_a_limit_that_nothing_keeps(serve, tmp_path, capsys):
    words = ["--num_requests", "2", "--input_len", "5", "--output_len", "4", "--limit", "ttft:0.000001", "--quiet"]
    assert main(["bench", "sweep", serve().url, *words, "--most_runs", "2"]) == 0
    assert "highest rate with ttft p99 < 1e-06 ms: none" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--request_rate", "3"], "the sweep chooses the rates"),
        (["--start_rate", "0"], "--start_rate: expected a number above 0"),
        (["--tolerance", "2"], "--tolerance: expected a number above 0 and below 1"),
        (["--limit", "speed:5"], "--limit: expected ttft:MS"),
        (["--most_runs", "0"], "--most_runs: expected 1 or more"),
    ],
)
def test_bad_options(capsys, words, message):
    assert main(["bench", "sweep", "http://127.0.0.1:9", *words]) == 2
    assert message in capsys.readouterr().err
