"""Figures from records whose moments are known."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from llmc.compiler.benchmark.records import Record
from llmc.compiler.benchmark.summary import meets, parse_objectives, spread, summarize
from llmc.compiler.benchmark.watch import EngineWatch, between, gpu_figures
from llmc.errors import OptionError


def record(sent: float, arrivals: list[tuple[float, int]], inputs: int = 10) -> Record:
    outputs = sum(tokens for _, tokens in arrivals)
    return Record(inputs, sent, sent, arrivals, arrivals[-1][0], outputs)


FIRST = record(0.0, [(1.0, 1), (3.0, 2), (4.0, 1)])
SECOND = record(1.0, [(1.5, 1)], inputs=30)


def test_latencies_of_one_request() -> None:
    assert FIRST.time_to_first_token == 1.0
    assert FIRST.time_per_output_token == (4.0 - 1.0) / 3
    assert FIRST.end_to_end == 4.0
    assert FIRST.gaps() == [1.0, 1.0, 1.0]  # two tokens after two seconds, then one after one
    assert SECOND.time_per_output_token is None
    assert SECOND.gaps() == []
    assert SECOND.end_to_end == 0.5


def test_figures_of_a_run() -> None:
    failed = Record(1000, error="status 500", detail="no memory")
    figures = summarize([FIRST, failed, SECOND], 5.0)
    expected = {
        "requests": 2,
        "failed": 1,
        "input_tokens": 40,
        "output_tokens": 5,
        "requests_per_second": 0.4,
        "output_tokens_per_second": 1.0,
        "tokens_per_second": 9.0,
    }
    assert {name: figures[name] for name in expected} == expected
    assert figures["latency"]["ttft"] == pytest.approx(
        {"mean": 0.75, "p50": 0.75, "p90": 0.95, "p99": 0.995, "max": 1.0}
    )
    assert figures["latency"]["tpot"]["max"] == 1.0
    assert "goodput" not in figures
    assert figures["errors"] == {"status 500": {"count": 1, "example": "no memory"}}


def test_every_failure_is_counted_under_its_kind() -> None:
    records = [Record(1), Record(1, error="a", detail="one"), Record(1, error="a", detail="two"), FIRST, Record(1)]
    figures = summarize([*records, Record(1)], 5.0)
    assert (figures["requests"], figures["failed"]) == (1, 5)
    assert figures["errors"] == {
        "no token came": {"count": 3, "example": ""},
        "a": {"count": 2, "example": "one"},
    }


def test_answers_that_end_before_their_length_are_counted() -> None:
    short = dataclasses.replace(FIRST, asked_tokens=5)
    assert summarize([short, dataclasses.replace(FIRST, asked_tokens=4)], 5.0)["short_answers"] == 1


def test_percentiles() -> None:
    assert spread(range(101)) == pytest.approx({"mean": 50, "p50": 50, "p90": 90, "p99": 99, "max": 100})
    assert spread([]) == {}


def test_goodput_counts_requests_that_meet_every_objective() -> None:
    assert meets(FIRST, {"ttft": 1.0, "e2e": 4.0})
    assert not meets(FIRST, {"ttft": 0.9})
    assert not meets(FIRST, {"itl": 0.9})
    assert not meets(Record(1, error="gone"), {"ttft": 9.0})
    figures = summarize([FIRST, SECOND, Record(1, error="gone")], 5.0, {"ttft": 0.6})
    assert figures["goodput"] == {
        "objectives": {"ttft": 0.6},
        "requests_per_second": 0.2,
        "share": pytest.approx(1 / 3),
    }


def test_objectives() -> None:
    assert parse_objectives(["ttft:500", "tpot:12.5", "e2el:4000"]) == {"ttft": 0.5, "tpot": 0.0125, "e2e": 4.0}
    for words in (["ttft"], ["ttft:0"], ["ttft:x"], ["latency:5"], ["ttft:5", "ttft:6"], ["ttft:inf"], ["ttft:nan"]):
        with pytest.raises(OptionError, match="--goodput: expected ttft:MS, itl:MS, tpot:MS, e2e:MS"):
            parse_objectives(words)


def stats(used: int, steps: int, tokens: int, running: int) -> dict[str, Any]:
    zero = ("num_prompt_tokens", "num_preemptions", "num_looked_up_tokens", "num_reused_tokens", "num_waiting")
    return dict.fromkeys(zero, 0) | {
        "blocks_used": used,
        "blocks_total": 20,
        "num_steps": steps,
        "num_generated_tokens": tokens,
        "num_running": running,
    }


def test_engine_figures_are_those_since_the_first_look() -> None:
    found = between(stats(0, 7, 70, 0), [stats(10, 8, 80, 3), stats(2, 11, 110, 5)])
    assert found["kv_used_peak"] == 0.5
    assert found["kv_used_mean"] == pytest.approx(0.3)
    assert (found["running_peak"], found["steps"], found["tokens_per_step"]) == (5, 4, 10.0)


def test_looks_are_not_more_frequent_than_the_interval() -> None:
    seen = [stats(0, 0, 0, 0) for _ in range(9)]
    watch = EngineWatch(lambda: seen.pop(), interval=3600)
    for _ in range(5):
        watch.look()
    assert len(seen) == 7
    watch.summary()
    assert len(seen) == 6


def test_gpu_figures_skip_what_the_driver_does_not_know() -> None:
    found = gpu_figures("50, 1000, [N/A]\n100, 3000, [N/A]\n77, 20")
    assert found == {
        "utilization_percent": {"mean": 75.0, "peak": 100.0},
        "memory_mib": {"mean": 2000.0, "peak": 3000.0},
    }
    assert gpu_figures("") == {}
