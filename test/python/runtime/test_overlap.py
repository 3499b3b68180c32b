"""Overlap of steps on a real model: SmolLM2 on the CUDA backend, over the stand-in for libcuda."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from support.pretend_gpu import compile_fake_cuda, for_pretend_gpu

from llmc.runtime import KvCacheConfig, SamplingParams, SchedulerConfig, load_engine

TEXT = """A compiler reads a program and writes another one that means the same. The river Seine runs through Paris,
and the Thames runs through London; both cities grew where a road could cross the water."""


@pytest.fixture(scope="module")
def fake_cuda(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(compile_fake_cuda(tmp_path_factory.mktemp("cuda") / "fake_cuda.so"))


@pytest.fixture(scope="module")
def gpu_engine(smollm2_host_engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return for_pretend_gpu(smollm2_host_engine, tmp_path_factory.mktemp("gpu") / "engine")


def outputs(path: Path, **options) -> list[tuple[list[int], str | None]]:
    """Prompts of mixed length, ends by length and by stop tokens."""
    with load_engine(path, verify_weights="never", **options) as engine:
        ids = engine.tokenizer.encode(TEXT)
        rng = random.Random(3)
        prompts = [ids[start : start + rng.randint(1, 30)] for start in rng.sample(range(len(ids) - 1), 10)]
        params = [
            SamplingParams(max_tokens=rng.randint(1, 14), temperature=0, ignore_eos=True,
                           stop_token_ids=sorted(set(ids)) if i % 3 == 0 else [])
            for i in range(len(prompts))
        ]  # fmt: skip
        found = [(one.outputs[0].token_ids, one.outputs[0].finish_reason) for one in engine.generate(prompts, params)]
        stats = engine.stats
        assert stats["blocks_used"] == 0 and engine.health == ""
        assert (stats["graph_launches"] > 0) == options.get("cuda_graphs", False)
        return found


def num_overlapped(trace: Path) -> int:
    """Steps that were started before the one in front of them had ended."""
    spans = [event for event in json.loads(trace.read_text()) if event["ph"] == "X"]
    ends = {one["args"]["step"]: one["ts"] + one["dur"] for one in spans if one["name"] == "wait"}
    starts = {one["args"]["step"]: one["ts"] for one in spans if one["name"] == "launch"}
    return sum(starts[step] < ends.get(step - 1, 0) for step in starts)


def test_tokens_are_the_same_with_and_without_overlap(
    smollm2_host_engine: Path, gpu_engine: Path, fake_cuda: str, tmp_path: Path
):
    trace = tmp_path / "trace.json"
    expected = outputs(smollm2_host_engine)
    assert {"length", "stop"} == {reason for _, reason in expected}
    small = {
        "kv_cache_config": KvCacheConfig(max_tokens=512),  # some have to wait
        "scheduler_config": SchedulerConfig(max_num_tokens=16, policy="max_utilization"),
    }
    for options in ({"cuda_graphs": False}, {"cuda_graphs": True}, {"cuda_graphs": True, **small}):
        for overlap in (False, True):
            options.setdefault("kv_cache_config", KvCacheConfig(max_tokens=4096))
            got = outputs(gpu_engine, cuda_library=fake_cuda, overlap=overlap, trace_file=trace, **options)
            assert got == expected, (options, overlap)
            assert (num_overlapped(trace) > 10) == overlap
