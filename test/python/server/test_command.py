"""`llmc serve` as a process: draining, options, ten thousand rude clients."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import threading
from pathlib import Path

import httpx
import pytest
from support.serve_process import serving, start, url_of

TEXT = "/v1/completions"
CHAT = "/v1/chat/completions"
ITEMS = "/v1/responses"
MESSAGES = [{"role": "user", "content": "x"}]
DEEP: dict = {"type": "string"}
for _ in range(60):
    DEEP = {"type": "array", "items": DEEP, "uniqueItems": True}
BAD_SCHEMAS = [
    {"type": "array", "uniqueItems": True}, {"type": "colour"}, {"$ref": "#/nowhere"}, {"$ref": "http://localhost/x"},
    {"pattern": "(", "type": "string"}, {"not": {}}, {"type": "object", "properties": 5}, False, "{", "null",
    {"allOf": [{"type": "string"}, {"type": "integer"}]}, {"minimum": 5, "maximum": 4, "type": "integer"}, DEEP,
]  # fmt: skip
LONG = {"prompt": "hello", "max_tokens": 120, "ignore_eos": True, "temperature": 1}


def test_drains_on_sigterm(slow_toy):
    process = start(f"mine={slow_toy}", "--port", "0", "--api_key", "k")
    url = url_of(process)
    got: list[str] = []
    first = threading.Event()

    def read() -> None:
        headers = {"authorization": "Bearer k"}
        with httpx.stream("POST", f"{url}{TEXT}", json={**LONG, "stream": True}, headers=headers, timeout=60) as answer:
            for text in answer.iter_lines():
                got.append(text)
                first.set()

    reader = threading.Thread(target=read)
    reader.start()
    assert first.wait(60)
    process.send_signal(signal.SIGTERM)
    reader.join(60)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 0, errors
    assert got[-2:] == ["data: [DONE]", ""] and '"finish_reason":"length"' in "".join(got)
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health")


def test_ctrl_c_ends_an_answer_that_takes_too_long(slow_toy):
    process = start(str(slow_toy), "--port", "0", "--drain_seconds", "1")
    url = url_of(process)
    with (
        contextlib.suppress(httpx.HTTPError),
        httpx.stream("POST", f"{url}{TEXT}", json={**LONG, "n": 128, "stream": True}) as answer,
    ):
        lines = answer.iter_lines()
        next(lines)
        process.send_signal(signal.SIGINT)
        list(lines)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 0, errors


def test_a_port_that_is_taken(toy, server):
    process = start(str(toy), "--port", server.url.rpartition(":")[2])
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 2 and "cannot listen at 127.0.0.1" in errors and "--port" in errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["/nowhere"], "/nowhere"),
        (["ENGINE", "--port", "70000"], "--port: expected 0 to 65535, found 70000"),
        (["ENGINE", "--max_requests", "0"], "--max_requests: expected a positive number"),
        (["ENGINE", "--ssl_certfile", "x"], "belong together"),
        (["a=ENGINE", "a=ENGINE"], "two engines are called 'a'"),
        (["ENGINE", "ENGINE", "--served_model_name", "a"], "names one engine"),
    ],
)
def test_bad_options(toy, capsys, options, message):
    from llmc.compiler.cli import main

    options = [option.replace("ENGINE", str(toy)) for option in options]
    assert main(["serve", "--port", "0", *options]) == 2
    assert message in capsys.readouterr().err


def resident(pid: int) -> int:
    """Bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_ten_thousand_rude_clients(toy):
    """Disconnects, malformed bodies, giant prompts, unknown fields, bad schemas, on all three paths: no block stays
    used, memory stays flat."""
    rng = random.Random(11)

    async def one(client: httpx.AsyncClient) -> None:
        kind, patience = rng.randrange(8), rng.randrange(1, 20)
        body = {**LONG, "prompt": [rng.randrange(64) for _ in range(rng.randrange(1, 60))], "max_tokens": 30}
        if kind == 0:
            assert (await client.post(TEXT, json=body)).status_code == 200
        elif kind == 1:
            nonsense = bytes(rng.randrange(256) for _ in range(patience * 5))
            headers = {"content-type": "application/json"}
            assert (await client.post(TEXT, content=nonsense, headers=headers)).status_code == 400
        elif kind == 2:
            assert (await client.post(TEXT, json={"prompt": "a" * 500_000})).status_code == 400
        elif kind == 3:
            wrong = rng.choice([{"x": 1}, {"n": -1}, {"stop": 5}, {"temperature": "hot"}, {"logit_bias": [1]}])
            assert (await client.post(TEXT, json={**body, **wrong})).status_code == 400
        elif kind == 4:
            task = asyncio.ensure_future(client.post(TEXT, json={**body, "n": 4}))
            await asyncio.sleep(patience * 5e-4)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        elif kind == 5:
            schema = {"structured_outputs": {"json": rng.choice(BAD_SCHEMAS)}}
            path, asked = rng.choice([(TEXT, {"prompt": "a"}), (CHAT, {"messages": MESSAGES}), (ITEMS, {"input": "a"})])
            assert (await client.post(path, json={**asked, **schema})).status_code == 400
        elif kind == 6:
            asked = {"input": "a", "stream": bool(patience % 2), "max_output_tokens": 30, "ignore_eos": True}
            assert (await client.post(ITEMS, json=asked)).status_code == 200
        else:
            path, asked = rng.choice([(TEXT, body), (CHAT, {"messages": MESSAGES}), (ITEMS, {"input": "a"})])
            async with client.stream("POST", path, json={**asked, "stream": True}) as answer:
                seen = 0
                async for _ in answer.aiter_lines():
                    seen += 1
                    if seen >= patience:
                        break

    async def many(url: str, count: int) -> None:
        async with httpx.AsyncClient(base_url=url, limits=httpx.Limits(max_connections=48), timeout=120) as client:
            for _ in range(count // 100):
                await asyncio.gather(*(one(client) for _ in range(100)))

    with serving(toy) as (process, url):
        asyncio.run(many(url, 2_000))
        warm = resident(process.pid)
        asyncio.run(many(url, 10_000))
        grown = resident(process.pid) - warm
        metrics = httpx.get(f"{url}/metrics").text
        assert 'llmc_requests_running{model_name="toy"} 0.0' in metrics
        assert 'llmc_requests_waiting{model_name="toy"} 0.0' in metrics
        assert 'llmc_kv_blocks_used{model_name="toy"} 0.0' in metrics
        assert httpx.post(f"{url}{TEXT}", json=LONG).status_code == 200
        assert grown < 32 << 20, f"{grown / 2**20:.1f} MiB more after 10,000 requests"
