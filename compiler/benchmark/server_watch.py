"""KV cache and queue of a server while requests run, from the Prometheus text at its /metrics."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from llmc.compiler.benchmark.watch import between

#: Statistic, named as in Engine.stats -> samples of llmc, vLLM (several versions) and llama.cpp that say it.
_SAMPLES: Mapping[str, tuple[str, ...]] = {
    "kv_used": (
        "llmc_kv_usage_ratio",
        "vllm:kv_cache_usage_perc",
        "vllm:gpu_cache_usage_perc",
        "llamacpp:kv_cache_usage_ratio",
    ),
    "blocks_total": ("llmc_kv_blocks",),
    "num_running": ("llmc_requests_running", "vllm:num_requests_running", "llamacpp:requests_processing"),
    "num_waiting": ("llmc_requests_waiting", "vllm:num_requests_waiting", "llamacpp:requests_deferred"),
    "num_steps": ("llmc_steps_total",),
    "num_prompt_tokens": ("llmc_prefill_tokens_total",),
    "num_generated_tokens": ("llmc_generated_tokens_total",),
    "num_preemptions": ("llmc_preemptions_total", "vllm:num_preemptions_total"),
    "num_looked_up_tokens": ("llmc_prefix_queried_tokens_total", "vllm:prefix_cache_queries_total"),
    "num_reused_tokens": ("llmc_prefix_reused_tokens_total", "vllm:prefix_cache_hits_total"),
}
_NAMES = {sample: name for name, samples in _SAMPLES.items() for sample in samples}


def statistics(text: str, model: str) -> dict[str, float]:
    """What the samples say of a model; samples without a model's name count for it. Raises ValueError."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = _NAMES.get(sample.name)
            if name and sample.labels.get("model_name", model) == model:
                found[name] = found.get(name, 0.0) + sample.value
    return found


@contextlib.asynccontextmanager
async def server_watch(
    http: aiohttp.ClientSession, url: str, model: str, interval: float = 0.25
) -> AsyncIterator[dict[str, Any]]:
    """Fills the dictionary at the end, as `between` does; it stays empty where the server tells nothing.

    When it tells nothing at the end, because it is gone or too busy, changes of counters are left out.
    """
    figures: dict[str, Any] = {}

    async def look() -> dict[str, float]:
        try:
            async with http.get(f"{url}/metrics", timeout=aiohttp.ClientTimeout(total=10)) as response:
                return statistics(await response.text(), model) if response.status == 200 else {}
        except (aiohttp.ClientError, asyncio.TimeoutError, ValueError):
            return {}

    async def keep_looking(looks: list[dict[str, float]]) -> None:
        while True:
            if seen := await look():
                looks.append(seen)
            await asyncio.sleep(interval)

    first = await look()
    if not first:
        yield figures
        return
    looks: list[dict[str, float]] = []
    task = asyncio.create_task(keep_looking(looks))
    try:
        yield figures
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        looks.append(await look())
        figures.update(between(first, looks))
