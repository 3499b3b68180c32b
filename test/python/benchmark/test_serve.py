"""`llmc bench serve` against the toy engine behind a real server, and against servers that misbehave."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from llmc.compiler.benchmark.online import run_online
from llmc.compiler.benchmark.records import Record
from llmc.compiler.benchmark.workload import WorkItem
from llmc.compiler.cli import main

Bench = Callable[..., dict[str, Any]]
SHORT = ["--input_len", "6", "--output_len", "5", "--num_requests", "8"]


@pytest.fixture
def bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Bench:
    def run(url: str, *options: str) -> dict[str, Any]:
        out = tmp_path / "report.json"
        assert main(["bench", "serve", url, *options, "--json", str(out), "--quiet"]) == 0, capsys.readouterr().err
        return json.loads(out.read_text()) | {"shown": capsys.readouterr().out}

    return run


def test_our_server(server: Any, bench: Bench) -> None:
    found = bench(server.url, "--shape", "6/5x8", "20/30x4", "--goodput", "ttft:1e9")
    assert found["kind"] == "serve"
    assert found["server"] == {"model": "toy", "dialect": "usage with every event"}
    assert [run["name"] for run in found["runs"]] == ["6/5x8", "20/30x4"]
    for run, requests, inputs, outputs in zip(found["runs"], (8, 4), (48, 80), (40, 120), strict=True):
        figures = run["figures"]
        assert (figures["requests"], figures["failed"], figures["errors"]) == (requests, 0, {})
        assert (figures["input_tokens"], figures["output_tokens"]) == (inputs, outputs)
        assert figures["goodput"]["share"] == 1.0 and figures["short_answers"] == 0
        # What was computed, from the server's own counters: the warm-up came before.
        engine = run["engine"]
        computed = engine["steps"] * engine["tokens_per_step"] + engine["prompt_tokens_reused"]
        assert computed == pytest.approx(inputs + outputs), engine
        assert 0 <= engine["kv_used_mean"] <= engine["kv_used_peak"] <= 1
    for words in ("output tokens/s", "KV cache used", "time to first token", "sent late by"):
        assert words in found["shown"]


def test_chats_of_a_dataset(server: Any, bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text('{"prompt": "hello", "output_tokens": 4}\n{"prompt": "who are you", "output_tokens": 7}\n')
    [run] = bench(server.url + "/v1", "--endpoint", "chat", "--dataset", str(path))["runs"]
    assert (run["figures"]["requests"], run["figures"]["output_tokens"]) == (2, 11)
    assert run["figures"]["input_tokens"] > len("hello" + "who are you")  # the template's words too


def test_random_chats_need_a_tokenizer(server: Any, bench: Bench, toy: Path, capsys: Any) -> None:
    assert main(["bench", "serve", server.url, *SHORT, "--endpoint", "chat"]) == 2
    assert "pass --tokenizer" in capsys.readouterr().err
    [run] = bench(server.url, *SHORT, "--endpoint", "chat", "--tokenizer", str(toy))["runs"]
    assert (run["figures"]["requests"], run["figures"]["failed"]) == (8, 0)


def test_arrivals_at_a_rate(server: Any, bench: Bench) -> None:
    [run] = bench(server.url, *SHORT, "--request_rate", "40", "--concurrency", "4")["runs"]
    assert run["figures"]["requests"] == 8
    assert run["late"]["max"] >= 0


def test_a_trace(server: Any, bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    rows = ["TIMESTAMP,ContextTokens,GeneratedTokens", "2023-11-16 18:15:46.5,9,3", "2023-11-16 18:15:47.5,400,2"]
    path.write_text("\n".join(rows))
    [run] = bench(server.url, "--trace", str(path), "--trace_speed", "10", "--too_long", "clip")["runs"]
    assert run["figures"]["seconds"] >= 0.1
    assert (run["figures"]["input_tokens"], run["figures"]["output_tokens"]) == (9 + 127, 3 + 1)


def test_refused_requests_are_counted_with_what_the_server_said(serve: Any, bench: Bench) -> None:
    url = serve(max_requests=2).url
    [run] = bench(url, "--input_len", "6", "--output_len", "100", "--num_requests", "30")["runs"]
    figures = run["figures"]
    assert figures["failed"] > 0 and figures["requests"] + figures["failed"] == 30
    assert figures["errors"]["status 429"]["count"] == figures["failed"]
    assert figures["errors"]["status 429"]["example"]


def test_time_outs_are_counted(serve: Any, slow_toy: Path, bench: Bench) -> None:
    found = bench(serve(slow_toy).url, "--input_len", "6", "--output_len", "100", "--num_requests", "3",
                  "--timeout", "0.2")  # fmt: skip
    errors = found["runs"][0]["figures"]["errors"]
    assert errors["timeout after 0.2 s"]["count"] == 3
    assert "timeout after 0.2 s" in found["shown"]


def test_an_api_key(serve: Any, bench: Bench, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    url = serve(api_keys=("k",)).url
    assert main(["bench", "serve", url, *SHORT]) == 2
    assert "it asks for an API key: pass --api_key" in capsys.readouterr().err
    monkeypatch.setenv("LLMC_API_KEY", "k")
    assert bench(url, *SHORT)["runs"][0]["figures"]["requests"] == 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "other"], "--model: expected one of those that .* serves (toy), found other"),
        (["--timeout", "0"], "--timeout: expected positive seconds"),
        (["--extra_body", "[]"], "--extra_body: expected a JSON object, found '[]'"),
        ([*SHORT, "--extra_body", '{"nonsense": 1}'], "expected a streamed answer, found status 400: "),
        (["--request_rate", "0"], "--request_rate: expected a positive number, found 0"),
        (["--input_len", "200"], "100 of 100 requests do not fit: expected at most 128 tokens"),
        (["--tokenizer", "/none"], "--tokenizer: "),
        (["--trace", "/none"], "cannot read /none"),
    ],
)
def test_bad_options(server: Any, capsys: Any, options: list[str], message: str) -> None:
    assert main(["bench", "serve", server.url, *options]) == 2
    assert message.replace(".*", server.url) in capsys.readouterr().err


def test_no_server(capsys: Any) -> None:
    assert main(["bench", "serve", "localhost"]) == 2
    assert "expected an address like http://" in capsys.readouterr().err
    assert main(["bench", "serve", "http://127.0.0.1:9"]) == 2
    assert "Expected a running server with OpenAI's API there" in capsys.readouterr().err


class Foreign:
    """A plainer server: refuses what OpenAI does not define, tells no limits, no metrics and no vocabulary.

    Prompts say what it does: [1, ...] answers, [2, ...] drops the connection, [3, ...] sends nonsense.
    """

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while (more := await receive())["type"] == "http.request":
            body += more["body"]
            if not more["more_body"]:
                break
        if scope["path"] == "/v1/models":
            await self.reply(send, 200, {"data": [{"id": "plain"}]})
        elif scope["path"] != "/v1/completions":
            await self.reply(send, 404, {"error": "no such path"})
        elif {"ignore_eos", "stream_options"} & set(request := json.loads(body)):
            await self.reply(send, 400, {"error": {"message": "unknown field"}})
        else:
            await self.stream(send, request["prompt"][0], request["max_tokens"])

    @staticmethod
    async def reply(send: Any, status: int, answer: Any) -> None:
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    @staticmethod
    async def stream(send: Any, kind: int, tokens: int) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for _ in range(tokens if kind == 1 else 1):
            event = b'data: {"choices": [{"text": "x"}]}\n\n' if kind < 3 else b"data: {oops\n\n"
            await send({"type": "http.response.body", "body": event, "more_body": True})
        if kind == 2:
            raise ConnectionError("dropped")
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


@pytest.fixture
def foreign() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(Foreign(), log_level="critical", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(30)


def test_a_foreign_server(foreign: str, bench: Bench, tmp_path: Path, capsys: Any) -> None:
    assert main(["bench", "serve", foreign, *SHORT]) == 2
    assert "pass --tokenizer or --vocab_size" in capsys.readouterr().err
    path = tmp_path / "set.jsonl"
    rows = [[1], [1, 9], [2, 9], [3, 9], [3, 8]]
    path.write_text("\n".join(json.dumps({"input_ids": ids, "output_tokens": 6}) for ids in rows))
    found = bench(foreign, "--dataset", str(path), "--warmup", "1")
    assert found["server"] == {"model": "plain", "dialect": "no usage, answers end by themselves"}
    [run] = found["runs"]
    assert (run["figures"]["requests"], run["figures"]["output_tokens"]) == (2, 12)
    counts = {kind: error["count"] for kind, error in run["figures"]["errors"].items()}
    assert counts == {"answer not understood": 2, "connection lost": 1}
    assert run["engine"] == {}


def test_no_more_at_a_time_than_asked_for_and_at_their_times() -> None:
    running = 0

    async def ask(item: WorkItem, record: Record, clock: Callable[[], float]) -> None:
        nonlocal running
        record.sent = clock()
        running += 1
        assert running <= 2
        await asyncio.sleep(0.01)
        running -= 1
        record.finished = clock()
        record.arrivals.append((record.finished, 1))

    items = [WorkItem([5], 1, arrival=0.004 * i) for i in range(20)]
    finished: list[Record] = []
    records, seconds = asyncio.run(run_online(ask, items, concurrency=2, on_finish=finished.append))
    assert len(finished) == 20 and all(record.ok and record.late >= 0 for record in records)
    assert [record.due for record in records] == [item.arrival for item in items]
    assert seconds == max(record.finished for record in records)
    assert records[-1].late > 0.01  # twenty of 10 ms, two at a time, take longer than they come
