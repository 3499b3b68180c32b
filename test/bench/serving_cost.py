"""What the HTTP server costs: many streams at once over an engine whose steps are nothing, or are paced.

    python test/bench/serving_cost.py [--streams 256 1000] [--tokens 64] [--out FILE.json]

The engine is the toy of the tests (test/cpp/runtime/toy), served by `llmc serve` in its own process; the
client is this one, on the same machine, so both share its cores. Two runs for each number of streams:

- free: steps take microseconds. Wall time over tokens is what a token costs, client included;
  the CPU time of the server's process over tokens is what it costs the server.
- paced: a step takes --step_ms. All its tokens are there at once; each costs the time from the arrival of the
  one before it (`token_us`), and waits for all before it (`spread_ms`: after the first one of the step).

Each stream must bring its tokens in order and whole: its text is compared with the engine's own.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
from support.report import header
from support.toy_engine import compile_kernels, write_toy

from llmc.runtime import SamplingParams, load_engine


def widen(streams: int) -> Any:
    """An edit of the toy's plan: `streams` sequences in a step."""

    def edit(manifest: Any, plan: Any) -> None:
        limits = manifest["limits"]
        limits["max_batch_size"], limits["max_num_tokens"] = streams, streams
        plan["ranges"][-1]["max_tokens"] = streams
        hidden, logits = plan["arena"]["buffers"]
        hidden["bytes"] = 4 * streams
        logits["offset"] = -(-hidden["bytes"] // 256) * 256
        logits["bytes"] = 4 * 64 * streams
        size = logits["offset"] + logits["bytes"]
        plan["arena"].update(bytes=size, lower_bound=size, peak=size)

    return edit


def prompt(i: int) -> list[int]:
    return [2 + (i * 7 + j * j) % 60 for j in range(4)]


async def stream(port: int, i: int, tokens: int, arrivals: list[float]) -> str:
    """One completion over a bare socket; appends the arrival of each event with text."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = {"prompt": prompt(i), "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True}
    data = json.dumps({**body, "skip_special_tokens": False}).encode()
    headers = f"Host: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {len(data)}"
    writer.write(f"POST /v1/completions HTTP/1.1\r\n{headers}\r\n\r\n".encode() + data)
    text = ""
    async for line in reader:
        if line.startswith(b"data: {"):
            arrivals.append(time.perf_counter())
            text += json.loads(line[6:])["choices"][0]["text"]
        elif line.startswith(b"HTTP/1.1") and b" 200 " not in line:
            raise RuntimeError(f"stream {i}: {line!r} {await reader.read()!r}")
    writer.close()
    return text


def percentiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    last = len(ordered) - 1
    return {"p50": ordered[round(last * 0.5)], "p99": ordered[round(last * 0.99)]}


def bursts(arrivals: list[float], step_seconds: float) -> tuple[list[float], list[float]]:
    """Of each arrival, how long after the first one of its step it came, and how long after the one before it;
    a step begins after a pause."""
    since_first, since_last = [], []
    first = last = -1.0
    for moment in sorted(arrivals):
        if moment - last > step_seconds / 4:
            first = moment
        else:
            since_last.append(moment - last)
        last = moment
        since_first.append(moment - first)
    return since_first, since_last


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(engine: Path, streams: int, tokens: int, expected: list[str], step_seconds: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "llmc", "serve", f"toy={engine}", "--port", "0", "--log_level", "error"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+:(\d+)/v1", server.stdout.readline())
        if not found:
            raise RuntimeError("the server did not start")
        port = int(found[1])
        arrivals: list[list[float]] = [[] for _ in range(streams)]

        async def everyone() -> list[str]:
            return await asyncio.gather(*(stream(port, i, tokens, arrivals[i]) for i in range(streams)))

        before, started = cpu_seconds(server.pid), time.perf_counter()
        texts = asyncio.run(everyone())
        wall, cpu = time.perf_counter() - started, cpu_seconds(server.pid) - before
    finally:
        server.terminate()
        server.wait()
    wrong = [i for i in range(streams) if texts[i] != expected[i]]
    if wrong:
        raise RuntimeError(f"{len(wrong)} of {streams} streams brought other text, the first is {wrong[0]}")
    made = streams * tokens
    since_first, since_last = bursts(list(itertools.chain(*arrivals)), step_seconds)
    return {
        "streams": streams,
        "tokens": made,
        "wall_us_per_token": wall / made * 1e6,
        "server_cpu_us_per_token": cpu / made * 1e6,
        "token_us": percentiles([1e6 * one for one in since_last]) if step_seconds else None,
        "spread_ms": percentiles([1e3 * one for one in since_first]) if step_seconds else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="+", default=[256, 1000])
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--step_ms", type=int, default=50)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        kernels = {
            "free": compile_kernels(Path(folder) / "free.so"),
            "paced": compile_kernels(Path(folder) / "paced.so", f"-DTOY_STEP_MICROSECONDS={arguments.step_ms * 1000}"),
        }
        for streams in arguments.streams:
            for name, code in kernels.items():
                engine = write_toy(Path(folder) / f"{name}{streams}", code, widen(streams))
                if name == "free":
                    with load_engine(engine) as loaded:
                        params = SamplingParams(max_tokens=arguments.tokens, temperature=0, ignore_eos=True,
                                                skip_special_tokens=False)  # fmt: skip
                        outputs = loaded.generate([prompt(i) for i in range(streams)], params)
                    expected = [output.outputs[0].text for output in outputs]
                step = arguments.step_ms * 1e-3 if name == "paced" else 0.0
                row = {"engine": name, **measure(engine, streams, arguments.tokens, expected, step)}
                results.append(row)
                print(row, flush=True)
    report = {**header(), "step_ms": arguments.step_ms, "results": results}
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
