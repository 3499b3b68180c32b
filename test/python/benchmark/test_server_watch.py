"""Statistics of a server while it is measured: counters that it tells twice, and a server that is gone at the end."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from llmc.compiler.benchmark.server_watch import server_watch

METRICS = """# TYPE llmc_kv_usage_ratio gauge
llmc_kv_usage_ratio{{model_name="m"}} 0.{n}
# TYPE llmc_kv_blocks gauge
llmc_kv_blocks{{model_name="m"}} 40
# TYPE llmc_steps counter
llmc_steps_total{{model_name="m"}} {n}00
"""


async def watch(last_status: int) -> dict[str, Any]:
    """Three looks at a server whose counters grow; it answers with `last_status` from the third on."""
    looks = 0
    seen_twice = asyncio.Event()

    async def metrics(_: web.Request) -> web.Response:
        nonlocal looks
        looks += 1
        if looks == 2:
            seen_twice.set()
        return web.Response(text=METRICS.format(n=min(looks, 3)), status=200 if looks < 3 else last_status)

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        async with aiohttp.ClientSession() as http:
            async with server_watch(http, f"http://{host}:{port}", "m", interval=0.001) as figures:
                await asyncio.wait_for(seen_twice.wait(), 30)
            return figures
    finally:
        await runner.cleanup()


def test_counters_are_changes_between_the_first_and_the_last_look() -> None:
    figures = asyncio.run(watch(200))
    assert figures["steps"] == 200
    assert figures["kv_blocks"] == 40
    assert figures["kv_used_peak"] == pytest.approx(0.3)


def test_a_server_that_is_gone_at_the_end_has_no_counters() -> None:
    figures = asyncio.run(watch(503))
    assert "steps" not in figures
    assert figures["kv_blocks"] == 40
    assert figures["kv_used_peak"] == pytest.approx(0.2)
