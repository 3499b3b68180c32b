"""A thousand streams at once: each brings its tokens, all of them, in order."""

from __future__ import annotations

import asyncio
import json
import resource

import pytest
from serving_cost import prompt, widen
from support.serve_process import serving

from llmc.runtime import SamplingParams, load_engine

STREAMS = 1000
TOKENS = 50


@pytest.mark.slow
def test_a_thousand_streams(make_toy, slow_host_so):
    """The engine computes nothing worth the name and takes five milliseconds a step, so that all are open together."""
    engine = make_toy("wide", widen(STREAMS), slow_host_so)
    params = SamplingParams(max_tokens=TOKENS, temperature=0, ignore_eos=True, skip_special_tokens=False)
    with load_engine(engine) as loaded:
        expected = [one.outputs[0].text for one in loaded.generate([prompt(i) for i in range(STREAMS)], params)]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    begun: set[int] = set()
    everyone_is_there = asyncio.Event()

    async def stream(port: int, i: int) -> tuple[str, list[int]]:
        """The text, and the count of tokens that each event tells."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = {"prompt": prompt(i), "max_tokens": TOKENS, "temperature": 0, "ignore_eos": True, "stream": True,
                "skip_special_tokens": False, "stream_options": {"continuous_usage_stats": True}}  # fmt: skip
        data = json.dumps(body).encode()
        headers = f"Host: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {len(data)}"
        writer.write(f"POST /v1/completions HTTP/1.1\r\n{headers}\r\n\r\n".encode() + data)
        text, counts = "", []
        async for line in reader:
            if line.startswith(b"HTTP/1.1"):
                assert b" 200 " in line, line
                begun.add(i)
                if len(begun) == STREAMS:
                    everyone_is_there.set()
                await everyone_is_there.wait()  # nobody reads on before the last one has its first token
            elif line.startswith(b"data: {"):
                event = json.loads(line[6:])
                text += event["choices"][0]["text"]
                counts.append(event["usage"]["completion_tokens"])
        writer.close()
        return text, counts

    async def everyone(port: int) -> list[tuple[str, list[int]]]:
        return await asyncio.wait_for(asyncio.gather(*(stream(port, i) for i in range(STREAMS))), 300)

    with serving(f"toy={engine}") as (_, url):
        answers = asyncio.run(everyone(int(url.rpartition(":")[2])))
    assert [text for text, _ in answers] == expected
    for _, counts in answers:
        assert counts == sorted(counts) and counts[-1] == TOKENS
