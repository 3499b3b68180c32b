"""Histograms and the trace of steps, seen from Python."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path

import pytest
from idle import decode_spans, summary

from llmc.runtime import SamplingParams, load_engine
from llmc.runtime.histogram import Histogram


def test_quantiles_and_differences():
    before = Histogram(1.0, [(0.5, 2)])
    now = Histogram(11.0, [(0.5, 3), (2.0, 8), (4.0, 1)])
    assert now.count == 12
    assert (now.quantile(0), now.quantile(0.25), now.quantile(0.5), now.quantile(1)) == (0.5, 0.5, 2.0, 4.0)
    assert now.since(before) == Histogram(10.0, [(0.5, 1), (2.0, 8), (4.0, 1)])
    assert now.since(before).mean == 1.0
    nothing = now.since(now)
    assert (nothing.count, nothing.mean, nothing.quantile(0.99)) == (0, 0.0, 0.0)
    with pytest.raises(ValueError, match=r"1\.5"):
        now.quantile(1.5)


def test_an_engine_counts_and_traces(toy: Path, tmp_path: Path):
    trace = tmp_path / "trace.json"
    with load_engine(toy, trace_file=trace) as engine:
        engine.generate([[1, 2], [3]], SamplingParams(max_tokens=20, temperature=0, ignore_eos=True))
        seen = {name: one.count for name, one in engine.histograms.items()}
        stats = engine.stats
    assert seen["queue_seconds"] == seen["time_to_first_token_seconds"] == 2
    assert seen["inter_token_seconds"] == 38
    assert 0 < stats["host_seconds"] < stats["step_seconds"] + 10
    events = json.loads(trace.read_text())
    assert len(decode_spans(events, 2)) in (18, 19)  # but where they started one by one
    with pytest.raises(RuntimeError, match="measures engines for GPUs"):
        summary(events, 2)


def test_steps_need_no_gil(slow_toy: Path):
    """The GIL is held in C while 40 steps of 5 ms are due: no thread can run Python code meanwhile."""
    with load_engine(slow_toy) as engine:
        stream = engine.generate_stream([1, 2], SamplingParams(max_tokens=40, temperature=0, ignore_eos=True))
        assert engine.stats["num_generated_tokens"] < 40
        for _ in range(8):  # between these, a thread that asked for the GIL could make one step
            ctypes.PyDLL(None).usleep(999_999)
            if engine.stats["num_generated_tokens"] == 40:
                break
        else:
            pytest.fail(f"steps waited for the GIL: {engine.stats}")
        assert sum(len(delta.token_ids) for delta in stream) == 40


def test_idle_share():
    def span(name: str, step: int, ts: float, dur: float, batch: int = 4) -> dict:
        return {
            "name": name,
            "ph": "X",
            "ts": ts,
            "dur": dur,
            "args": {"step": step, "T": batch, "S": batch, "R": batch},
        }

    names = ("schedule", "launch", "wait", "emit")
    events = [{"name": "running", "ph": "C", "ts": 0, "args": {"running": 4}}]
    events += [span("kernels", 1, 0, 1, batch=3), span("kernels", 100, 0, 1)]  # other batch; alone
    for i in range(20):  # a step takes 100 us: 90 of kernels behind 4 of copies
        events += [span("inputs", 10 + i, 100 * i + 3, 4), span("kernels", 10 + i, 100 * i + 7, 90)]
        events += [span(name, 10 + i, 100 * i, 5) for name in names]
    found = summary(events, 4)
    assert found["steps"] == 20
    assert found["step_us"] == pytest.approx(100)
    assert found["idle_share"] == pytest.approx(1 - 20 * 90 / 1990)
    assert found["idle_share_without_input_copies"] == pytest.approx(1 - (20 * 90 + 19 * 4) / 1990)
    assert found["gap_us"] == {"median": pytest.approx(10), "max": pytest.approx(10)}
    with pytest.raises(RuntimeError, match="of 5 sequences, found 0"):
        summary(events, 5)
