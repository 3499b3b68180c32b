"""Disconnects, draining, metrics, logs: what an operator relies on."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import time

import httpx
import openai
import pytest

TEXT = "/v1/completions"
LONG = {"prompt": "hello", "max_tokens": 120, "ignore_eos": True, "temperature": 1}


def test_health_version_and_request_ids(server):
    assert server.http.get("/health").json() == {"status": "ok", "models": {"toy": "ok"}}
    assert server.http.get("/version").json()["version"]
    assert server.http.get("/version", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    assert len(server.http.get("/version", headers={"x-request-id": "a b"}).headers["x-request-id"]) == 32


def test_one_log_line_a_request(server, caplog):
    caplog.set_level(logging.INFO, logger="llmc.server")
    server.http.post(TEXT, json={**LONG, "max_tokens": 3}, headers={"x-request-id": "a"})
    body = {**LONG, "max_tokens": 4, "stream": True}
    with server.http.stream("POST", TEXT, json=body, headers={"x-request-id": "b"}) as answer:
        list(answer.iter_lines())
    server.http.post(TEXT, json={}, headers={"x-request-id": "c"})
    end = time.monotonic() + 10
    while len([one for one in caplog.records if one.name == "llmc.server"]) < 3 and time.monotonic() < end:
        time.sleep(0.01)  # a line comes after its answer
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == "llmc.server"]
    lines.sort(key=lambda one: one["request_id"])
    assert [(one["status"], one.get("completion_tokens")) for one in lines] == [(200, 3), (200, 4), (400, None)]
    assert [one["request_id"] for one in lines] == ["a", "b", "c"]
    assert lines[0]["model"] == "toy" and lines[0]["prompt_tokens"] == 6


def test_metrics(server):
    for n in (1, 3):
        server.http.post(TEXT, json={**LONG, "max_tokens": 5, "n": n})
    server.settle()
    text = server.http.get("/metrics").text
    samples = dict(re.findall(r"^(\w+(?:\{[^}]*\})?) (\S+)$", text, re.MULTILINE))
    assert float(samples['llmc_requests_running{model_name="toy"}']) == 0
    assert float(samples['llmc_requests_finished_total{finished_reason="length",model_name="toy"}']) == 4
    assert float(samples['llmc_request_seconds_count{model_name="toy"}']) == 4
    assert float(samples['llmc_prompt_tokens_total{model_name="toy"}']) == 4 * 6
    assert not re.search(r"^# (?:HELP|TYPE) \S*:", text, re.MULTILINE)
    vllm = server.http.get("/metrics/vllm").text
    assert 'vllm:num_requests_running{model_name="toy"} 0' in vllm
    assert 'vllm:request_success_total{model_name="toy",finished_reason="length"} 4.0' in vllm
    assert 'vllm:e2e_request_latency_seconds_bucket{model_name="toy",le="+Inf"} 4.0' in vllm


def test_a_client_that_goes_away_ends_its_request(serve, slow_toy):
    """Both ways of answering. Each would take 120 steps of several milliseconds."""
    server = serve(slow_toy)
    with httpx.Client(base_url=server.url) as gone:
        with gone.stream("POST", TEXT, json={**LONG, "n": 8, "stream": True}) as answer:
            next(answer.iter_lines())
        steps = server.settle()["num_steps"]
        assert steps < 60
        with pytest.raises(httpx.ReadTimeout):
            gone.post(TEXT, json={**LONG, "n": 8}, timeout=0.05)
        assert server.settle()["num_steps"] < steps + 60
    found = re.search(r'finished_total{finished_reason="abort".*} (\S+)', server.http.get("/metrics").text)
    assert float(found[1]) == 16


def test_random_disconnects_leave_nothing(server):
    """300 clients, most of which leave early, some send nonsense."""
    rng = random.Random(5)

    async def one(client: httpx.AsyncClient, kind: int, patience: int) -> None:
        body = {**LONG, "prompt": [rng.randrange(64) for _ in range(rng.randrange(1, 60))], "max_tokens": 40}
        if kind == 0:
            assert (await client.post(TEXT, json=body)).status_code == 200
        elif kind == 1:
            assert (await client.post(TEXT, content=b"{" * patience)).status_code == 400
        elif kind == 2:
            task = asyncio.ensure_future(client.post(TEXT, json=body))
            await asyncio.sleep(patience * 1e-3)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        else:
            async with client.stream("POST", TEXT, json={**body, "stream": True}) as answer:
                seen = 0
                async for _ in answer.aiter_lines():
                    seen += 1
                    if seen >= patience:
                        break

    async def everyone() -> None:
        limits = httpx.Limits(max_connections=64)
        async with httpx.AsyncClient(base_url=server.url, limits=limits, timeout=60) as client:
            await asyncio.gather(*(one(client, rng.randrange(4), rng.randrange(1, 30)) for _ in range(300)))

    asyncio.run(everyone())
    server.settle()
    alone = server.client.completions.create(model="toy", prompt="hello", max_tokens=9, temperature=0)
    assert alone.choices[0].text == server.client.completions.create(
        model="toy", prompt="hello", max_tokens=9, temperature=0).choices[0].text  # fmt: skip


def test_a_timeout_gives_what_there_is(serve):
    server = serve(request_timeout=1e-6)
    answer = server.client.completions.create(model="toy", prompt="hello", max_tokens=100)
    assert answer.choices[0].finish_reason == "timeout"


def test_async_client(server):
    async def ask() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            asked = [
                client.completions.create(model="toy", prompt="a" * i, max_tokens=5, temperature=0)
                for i in range(1, 33)
            ]
            return [answer.choices[0].text for answer in await asyncio.gather(*asked)]

    texts = asyncio.run(ask())
    for i in (1, 17, 32):
        alone = server.client.completions.create(model="toy", prompt="a" * i, max_tokens=5, temperature=0)
        assert texts[i - 1] == alone.choices[0].text
