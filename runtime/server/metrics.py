"""Prometheus metrics: the engines' own counters, and what requests saw of the server.

`/metrics` has names that promtool accepts; `/metrics/vllm` has the same values under the names of vLLM's
dashboards, whose colon promtool refuses.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from llmc.server.models import Models

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144)

# Name of a statistic of the engine, name here, help. Gauges first.
_GAUGES = (
    ("num_running", "requests_running", "Requests with KV blocks"),
    ("num_waiting", "requests_waiting", "Requests without KV blocks"),
    ("blocks_used", "kv_blocks_used", "KV blocks that running requests hold"),
    ("blocks_total", "kv_blocks", "KV blocks of the engine"),
    ("blocks_idle", "kv_blocks_idle", "Free KV blocks whose contents can be reused"),
    ("host_blocks_used", "kv_host_blocks_used", "KV blocks of preempted requests in host memory"),
    ("host_blocks_total", "kv_host_blocks", "KV blocks that host memory has room for"),
)
_COUNTERS = (
    ("num_steps", "steps", "Steps of the engine"),
    ("num_prompt_tokens", "prefill_tokens", "Tokens computed in prefill, recomputation included"),
    ("num_generated_tokens", "generated_tokens", "Tokens generated"),
    ("num_preemptions", "preemptions", "Requests that were paused for want of KV blocks"),
    ("num_evictions", "kv_evictions", "Reusable KV blocks that were given to others"),
    ("num_looked_up_tokens", "prefix_queried_tokens", "Prompt tokens looked up in the prefix cache"),
    ("num_reused_tokens", "prefix_reused_tokens", "Prompt tokens found in the prefix cache"),
    ("num_forks", "forks", "Requests that began with the KV blocks of another one of their prompt"),
    ("num_blocks_swapped_out", "kv_blocks_swapped_out", "KV blocks of preempted requests copied to host memory"),
    ("num_blocks_swapped_in", "kv_blocks_swapped_in", "KV blocks copied back from host memory"),
    ("num_deadlines_missed", "deadlines_missed", "Requests that ran out of time"),
    ("num_failed_steps", "failed_steps", "Steps that failed"),
    ("step_seconds", "step_seconds", "Time in steps"),
    ("host_seconds", "host_seconds", "The host's work for steps, done while the device computes where that overlaps"),
)
# Histograms of the engine, name here, help.
_HISTOGRAMS = (
    ("queue_seconds", "queue_seconds", "From submission to the first step of a request"),
    ("step_seconds", "step_duration_seconds", "A step"),
    ("host_step_seconds", "host_step_duration_seconds", "The host's work for a step"),
)
_OCTAVES = [2.0**k for k in range(-19, 10)]  # every fourth bucket of the engine ends at one
_VLLM_NAMES = {
    "llmc_requests_running": "vllm:num_requests_running",
    "llmc_requests_waiting": "vllm:num_requests_waiting",
    "llmc_kv_usage_ratio": "vllm:kv_cache_usage_perc",
    "llmc_preemptions": "vllm:num_preemptions",
    "llmc_prefix_queried_tokens": "vllm:prefix_cache_queries",
    "llmc_prefix_reused_tokens": "vllm:prefix_cache_hits",
    "llmc_generated_tokens": "vllm:generation_tokens",
    "llmc_prompt_tokens": "vllm:prompt_tokens",
    "llmc_requests_finished": "vllm:request_success",
    "llmc_time_to_first_token_seconds": "vllm:time_to_first_token_seconds",
    "llmc_inter_token_seconds": "vllm:inter_token_latency_seconds",
    "llmc_queue_seconds": "vllm:request_queue_time_seconds",
    "llmc_request_seconds": "vllm:e2e_request_latency_seconds",
    "llmc_request_prompt_tokens": "vllm:request_prompt_tokens",
    "llmc_request_generated_tokens": "vllm:request_generation_tokens",
}


class _EngineCollector(Collector):
    def __init__(self, models: Models) -> None:
        self._models = models

    def collect(self) -> Iterable[Metric]:
        found = [(model.name, model.llm.stats) for model in self._models]
        for key, name, text in _GAUGES:
            gauge = GaugeMetricFamily(f"llmc_{name}", text, labels=["model_name"])
            for model, stats in found:
                gauge.add_metric([model], stats[key])
            yield gauge
        usage = GaugeMetricFamily("llmc_kv_usage_ratio", "Used share of the KV blocks", labels=["model_name"])
        for model, stats in found:
            usage.add_metric([model], stats["blocks_used"] / max(stats["blocks_total"], 1))
        yield usage
        for key, name, text in _COUNTERS:
            counter = CounterMetricFamily(f"llmc_{name}", text, labels=["model_name"])
            for model, stats in found:
                counter.add_metric([model], stats[key])
            yield counter
        histograms = [(model.name, model.llm.histograms) for model in self._models]
        for key, name, text in _HISTOGRAMS:
            family = HistogramMetricFamily(f"llmc_{name}", text, labels=["model_name"])
            for model, seen in histograms:
                below = [(str(top), sum(n for bound, n in seen[key].buckets if bound <= top)) for top in _OCTAVES]
                family.add_metric([model], [*below, ("+Inf", seen[key].count)], seen[key].sum)
            yield family
        health = GaugeMetricFamily("llmc_healthy", "1 while the engine serves requests", labels=["model_name"])
        for served in self._models:
            health.add_metric([served.name], not served.health)
        yield health


class RequestMetrics:
    """Observed at the server, one for each completion."""

    def __init__(self, models: Models) -> None:
        self._registry = CollectorRegistry(auto_describe=True)
        self._registry.register(_EngineCollector(models))

        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"llmc_{name}", text, ["model_name"], buckets=buckets, registry=self._registry)

        self.first_token = histogram("time_to_first_token_seconds", "From arrival to the first token", _SECONDS)
        self.inter_token = histogram("inter_token_seconds", "Between tokens of one completion", _SECONDS)
        self.whole = histogram("request_seconds", "From arrival to the last token", _SECONDS)
        self.prompt_size = histogram("request_prompt_tokens", "Prompt tokens of a completion", _TOKENS)
        self.answer_size = histogram("request_generated_tokens", "Generated tokens of a completion", _TOKENS)
        self.prompt = Counter("llmc_prompt_tokens", "Prompt tokens of all completions", ["model_name"],
                              registry=self._registry)  # fmt: skip
        self.finished = Counter("llmc_requests_finished", "Completions that ended", ["model_name", "finished_reason"],
                                registry=self._registry)  # fmt: skip

    def watch(self, model: str, prompt_tokens: int) -> CompletionWatch:
        return CompletionWatch(self, model, prompt_tokens)

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def vllm_text(self) -> bytes:
        """Only metrics that vLLM has too; a dashboard made for it reads them."""
        lines = []
        for family in self._registry.collect():
            name = _VLLM_NAMES.get(family.name)
            if name is None:
                continue
            shown = f"{name}_total" if family.type == "counter" else name
            lines += [f"# HELP {shown} {family.documentation}", f"# TYPE {shown} {family.type}"]
            for sample in family.samples:
                if sample.name.endswith("_created"):
                    continue
                labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in sample.labels.items())
                lines.append(f"{name}{sample.name.removeprefix(family.name)}{{{labels}}} {sample.value}")
        return ("\n".join(lines) + "\n").encode()


@dataclass
class CompletionWatch:
    """Times of one completion."""

    metrics: RequestMetrics
    model: str
    prompt_tokens: int
    start: float = field(default_factory=time.perf_counter)
    last: float | None = None
    tokens: int = 0

    def news(self, tokens: int) -> None:
        if not tokens:
            return
        now = time.perf_counter()
        if self.last is None:
            self.metrics.first_token.labels(self.model).observe(now - self.start)
        else:
            self.metrics.inter_token.labels(self.model).observe((now - self.last) / tokens)
        self.last = now
        self.tokens += tokens

    def end(self, reason: str) -> None:
        self.metrics.finished.labels(self.model, reason).inc()
        self.metrics.prompt.labels(self.model).inc(self.prompt_tokens)
        self.metrics.prompt_size.labels(self.model).observe(self.prompt_tokens)
        self.metrics.answer_size.labels(self.model).observe(self.tokens)
        self.metrics.whole.labels(self.model).observe(time.perf_counter() - self.start)


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
