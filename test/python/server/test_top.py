"""`llmc top` and what a server says of its engines' health."""

from __future__ import annotations

import re

import pytest

from llmc.compiler.cli import main
from llmc.compiler.cli.top_cmd import read_stats, rows

TEXT = "/v1/completions"
BODY = {"prompt": "hello", "max_tokens": 20, "ignore_eos": True}


def test_figures_are_those_between_two_looks(server):
    server.http.post(TEXT, json=BODY)
    server.settle()
    before = read_stats(server.url, None)["toy"]
    for _ in range(3):
        server.http.post(TEXT, json=BODY)
    server.settle()
    now = read_stats(server.url, None)["toy"]
    found = dict(rows(before, now, 2.0))
    assert found["health"] == "ok"
    assert found["tokens/s generated, prompt"].startswith("30, ")
    assert found["requests running, waiting"] == "0, 0"
    for name in ("step, half / 99 % below", "host's work for a step", "time to the first token", "token to token"):
        assert re.fullmatch(r"[\d.]+ (us|ms|s) / [\d.]+ (us|ms|s)", found[name]), name
    nothing = dict(rows(now, now, 2.0))
    assert nothing["token to token"] == nothing["host's share of step time"] == "-"


def test_the_command_shows_a_table(server, capsys):
    assert main(["top", server.url, "--interval", "0.05", "--count", "2"]) == 0
    shown = capsys.readouterr().out
    assert "toy" in shown and "KV blocks used" in shown and "health" in shown


def test_what_cannot_be_watched(serve, capsys):
    def complaint(*arguments: str) -> str:
        assert main(["top", *arguments]) == 2
        return capsys.readouterr().err

    assert "expected an address like http://" in complaint("localhost")
    assert "--interval: expected positive seconds, found 0.0" in complaint("--interval", "0")
    assert "Expected a running `llmc serve` there" in complaint("http://127.0.0.1:9")
    assert "pass --api_key" in complaint(serve(api_keys=("k",)).url)


def test_engine_histograms_are_prometheus_histograms(server):
    server.http.post(TEXT, json=BODY)
    stats = server.settle()
    text = server.http.get("/metrics").text
    for name, count in (("step_duration", stats["num_steps"]), ("queue", 1)):
        buckets = [
            float(n) for n in re.findall(rf'llmc_{name}_seconds_bucket{{le="[^"]*",model_name="toy"}} (\S+)', text)
        ]
        assert len(buckets) == 30 and buckets == sorted(buckets)
        assert buckets[-1] == count
        assert f'llmc_{name}_seconds_count{{model_name="toy"}} {count}' in text
    assert 'llmc_healthy{model_name="toy"} 1.0' in text


@pytest.mark.parametrize("reason", ["the engine has stopped and must be loaded again: CUDA_ERROR_X"])
def test_health_says_why(server, monkeypatch, reason):
    assert server.http.get("/health").status_code == 200
    monkeypatch.setattr(type(server.llm), "health", property(lambda self: reason))
    answer = server.http.get("/health")
    assert answer.status_code == 503
    assert answer.json() == {"status": "unhealthy", "models": {"toy": reason}}
    assert 'llmc_healthy{model_name="toy"} 0.0' in server.http.get("/metrics").text
