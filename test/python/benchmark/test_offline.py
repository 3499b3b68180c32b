"""`llmc bench throughput` and `latency` on the toy engine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmc.compiler.benchmark.offline import run_offline
from llmc.compiler.benchmark.watch import gpu_watch
from llmc.compiler.benchmark.workload import WorkItem
from llmc.compiler.cli import main
from llmc.compiler.cli.bench_cmd import KINDS, spelled_out
from llmc.runtime import load_engine
from llmc.runtime.errors import RequestRefusedError

Bench = Callable[..., dict[str, Any]]


@pytest.fixture
def bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Bench:
    def run(kind: str, engine: Path, *options: str) -> dict[str, Any]:
        out = tmp_path / "report.json"
        assert main(["bench", kind, str(engine), *options, "--json", str(out), "--quiet"]) == 0, capsys.readouterr().err
        return json.loads(out.read_text()) | {"shown": capsys.readouterr().out}

    return run


def test_records_of_a_run(toy: Path) -> None:
    items = [WorkItem([5, 6, 7], 4), WorkItem([9], 1), WorkItem([8] * 20, 30)]
    finished = []
    with load_engine(toy) as engine:
        records, seconds = run_offline(engine, items, on_finish=finished.append)
    assert [(one.input_tokens, one.output_tokens) for one in records] == [(3, 4), (1, 1), (20, 30)]
    assert sorted(map(id, finished)) == sorted(map(id, records))
    for one in records:
        moments = [moment for moment, _ in one.arrivals]
        assert 0 <= one.sent <= moments[0] and moments == sorted(moments)
        assert moments[-1] == one.finished <= seconds
        assert sum(tokens for _, tokens in one.arrivals) == one.output_tokens


def test_no_more_requests_at_a_time_than_asked_for(slow_toy: Path) -> None:
    items = [WorkItem([5 + i, 6], 5) for i in range(6)]
    running = []
    with load_engine(slow_toy) as engine:
        records, _ = run_offline(
            engine, items, concurrency=2, observe=lambda: running.append(engine.stats["num_running"])
        )
        assert max(running) <= 2
        for i in range(2, 6):  # each waited for one of those before it
            assert sum(one.finished <= records[i].sent for one in records[:i]) >= i - 1
        records, _ = run_offline(engine, items)
        assert max(one.sent for one in records) < min(one.finished for one in records)


def test_requests_come_at_their_time(toy: Path) -> None:
    items = [WorkItem([5], 2, arrival=0.05 * i) for i in range(4)]
    with load_engine(toy) as engine:
        records, _ = run_offline(engine, items)
    assert all(one.sent >= 0.05 * i == one.due for i, one in enumerate(records))


def test_a_refused_request_leaves_nothing_running(toy: Path) -> None:
    with load_engine(toy) as engine:
        with pytest.raises(RequestRefusedError):
            run_offline(engine, [WorkItem([5], 100), WorkItem([5] * 500, 1)])
        [again] = engine.generate([[5, 6]])
        assert again.finished


def test_throughput(toy: Path, bench: Bench) -> None:
    found = bench("throughput", toy, "--input_len", "5-9", "--output_len", "7", "--num_requests", "20")
    assert found["format"] == "llmc-bench/1" and found["kind"] == "throughput"
    assert found["engine"]["target"]["name"] == "host" and len(found["engine"]["sha256"]) == 64
    assert found["settings"]["input_len"] == "5-9"
    [run] = found["runs"]
    assert run["name"] == "5-9/7x20"
    assert (run["figures"]["requests"], run["figures"]["failed"]) == (20, 0)
    assert run["figures"]["output_tokens"] == 140
    assert 100 <= run["figures"]["input_tokens"] <= 180
    # Steps of the measurement only: the warm-up came before.
    computed = run["engine"]["tokens_per_step"] * run["engine"]["steps"]
    assert computed == pytest.approx(140 + run["figures"]["input_tokens"])
    assert all(set(one) == {"mean", "p50", "p90", "p99", "max"} for one in run["figures"]["latency"].values())
    for words in ("output tokens/s", "KV cache used", "time to first token", "p99"):
        assert words in found["shown"]


def test_several_shapes(toy: Path, bench: Bench) -> None:
    runs = bench("throughput", toy, "--shape", "20/3x4", "4/10x6", "--concurrency", "3")["runs"]
    assert [run["name"] for run in runs] == ["20/3x4", "4/10x6"]
    assert [run["figures"]["output_tokens"] for run in runs] == [12, 60]


def test_latency_runs_requests_one_after_the_other(slow_toy: Path, bench: Bench) -> None:
    [run] = bench("latency", slow_toy, "--isl", "6", "--osl", "4", "--num-requests", "3")["runs"]
    assert run["engine"]["running_peak"] <= 1
    assert run["engine"]["waiting_peak"] == 0
    assert run["engine"]["steps"] == 3 * 4  # a prompt and its first token are one step


def test_shared_prefixes_are_found_in_the_cache(toy: Path, bench: Bench) -> None:
    options = ["--input_len", "4", "--output_len", "2", "--shared_prefix", "40", "--num_requests", "5"]
    reused = bench("latency", toy, *options)["runs"][0]["engine"]["prompt_tokens_reused"]
    assert reused == 4 * 40
    assert bench("latency", toy, *options, "--block_reuse", "off")["runs"][0]["engine"]["prompt_tokens_reused"] == 0


def test_a_dataset(toy: Path, bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"prompt": "hello", "output_tokens": 4}\n{"input_ids": [5, 6], "output_tokens": 300}\n')
    [run] = bench("throughput", toy, "--dataset", str(path), "--too_long", "clip")["runs"]
    assert run["name"] == "mine.jsonl"
    assert run["figures"]["input_tokens"] == len("hello") + 1 + 2
    assert run["figures"]["output_tokens"] == 4 + 126


def test_goodput(toy: Path, bench: Bench) -> None:
    options = ["--input_len", "4", "--output_len", "2", "--num_requests", "3", "--goodput", "ttft:1e9"]
    assert bench("latency", toy, *options)["runs"][0]["figures"]["goodput"]["share"] == 1.0


def test_gpu_use_comes_from_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\necho "$@" > "$0.arguments"\necho "40, 1000, 300.5"\nexec sleep 60\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    with gpu_watch(device=1) as found:
        while not (tmp_path / "nvidia-smi.arguments").exists():
            pass
        assert found == {}
    assert "--id=5" in (tmp_path / "nvidia-smi.arguments").read_text()
    assert set(found) <= {"utilization_percent", "memory_mib", "power_watts"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--shape", "1/2"], "--shape: expected input/output x requests like 128/128x2048, found '1/2'"),
        (
            ["--shape", "1/2x3", "--input_len", "4"],
            "expected one description of the requests, found --shape and --input",
        ),
        (["--shape", "1/2x3", "--num_requests", "4"], "leave --num_requests out"),
        (["--num_requests", "0"], "--num_requests: expected 1 or more, found 0"),
        (["--concurrency", "0"], "--concurrency: expected 1 or more, found 0"),
        (["--warmup", "-1"], "--warmup: expected 0 or more, found -1"),
        (["--shared_prefix", "-1"], "--shared_prefix: expected 0 tokens or more"),
        (["--input_len", "200"], "100 of 100 requests do not fit: expected at most 128 tokens"),
        (["--goodput", "ttft:fast"], "--goodput: expected"),
        (["--dataset", "/none"], "cannot read /none"),
    ],
)
def test_bad_options(toy: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str) -> None:
    assert main(["bench", "throughput", str(toy), *options]) == 2
    assert message in capsys.readouterr().err


def test_no_engine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["bench", "latency", str(tmp_path / "none")]) == 2
    assert "no engine at" in capsys.readouterr().err


def test_an_engine_instead_of_a_kind_means_steps() -> None:
    assert spelled_out(["ENGINE", "--profile"]) == ["steps", "ENGINE", "--profile"]
    assert spelled_out(["--batch", "1", "--", "ENGINE"]) == ["steps", "--batch", "1", "--", "ENGINE"]
    for kind in KINDS:
        assert spelled_out([kind, "ENGINE"]) == [kind, "ENGINE"]
    assert spelled_out([]) == [] and spelled_out(["--help"]) == ["--help"]


@pytest.mark.parametrize("kind", KINDS)
def test_help_of_every_kind(capsys: pytest.CaptureFixture[str], kind: str) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["bench", kind, "--help"])
    assert exit_.value.code == 0
    assert f"usage: llmc bench {kind}" in capsys.readouterr().out
