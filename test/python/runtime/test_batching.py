"""In-flight batching on a real model: what a request produces does not depend on what else runs.

SmolLM2-135M on the host, greedy. 32 requests of mixed length arrive at random steps; each must give,
token for token, what it gives alone.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from llmc.runtime import Engine, KvCacheConfig, SamplingParams, SchedulerConfig, load_engine

TEXT = """A compiler reads a program and writes another one that means the same. The first compilers turned formulas
into instructions for one machine; later ones learned to describe machines, and to choose among many ways of saying
the same thing. Between the two ends lies a ladder of languages, each a little closer to the hardware than the one
above it. On every rung something is decided and something is forgotten: names become addresses, loops become jumps,
and what was once a sentence about matrices becomes a schedule of loads and stores. A good ladder has rungs that a
person can stand on, look around, and see that nothing was lost on the way. The river Seine runs through Paris, and
the Thames runs through London; both cities grew where a road could cross the water."""


@dataclass(frozen=True)
class Job:
    prompt: list[int]
    tokens: int
    #: In steps after the first request.
    arrival: int

    @property
    def params(self) -> SamplingParams:
        return SamplingParams(temperature=0, max_tokens=self.tokens, ignore_eos=True)


def jobs_of(engine: Engine, count: int, last_arrival: int) -> list[Job]:
    """Prompts of 1 to 120 tokens cut from the text, 1 to 24 tokens to make, in order of arrival."""
    ids = engine.tokenizer.encode(TEXT)
    rng = random.Random(7)
    # A third of them begin in their first block of 64 and end in their second.
    lengths = [1, 2, 63, 64, 65] + [rng.randint(52, 62) for _ in range(count // 3)]
    lengths += [rng.randint(1, 120) for _ in range(count - len(lengths))]
    rng.shuffle(lengths)
    starts = [rng.randrange(len(ids) - length) for length in lengths]
    arrivals = sorted([0] + [rng.randint(0, last_arrival) for _ in range(count - 1)])
    return [
        Job(ids[start : start + length], rng.randint(1, 24), arrival)
        for start, length, arrival in zip(starts, lengths, arrivals, strict=True)
    ]


def wait_until(engine: Engine, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first statistics that meet the condition. An engine publishes them after each step."""
    limit = time.monotonic() + 60
    while not condition(stats := engine.stats):
        assert time.monotonic() < limit, f"nothing happens any more: {stats}"
        time.sleep(0.0005)
    return stats


def run_together(engine: Engine, jobs: list[Job]) -> tuple[list[list[int]], list[dict[str, Any]]]:
    """Tokens of each job, and the statistics seen at each arrival. Arrivals are counted in steps."""
    start = engine.stats["num_steps"]
    streams, seen = [], []
    for job in jobs:
        # An engine that has run dry counts no steps: then the next one comes at once.
        seen.append(
            wait_until(
                engine,
                lambda s, due=start + job.arrival: s["num_steps"] >= due or not s["num_running"] + s["num_waiting"],
            )
        )
        streams.append(engine.generate_stream({"prompt_token_ids": job.prompt}, job.params))
    return [[id for delta in stream for id in delta.token_ids] for stream in streams], seen


class Watch(threading.Thread):
    """Looks at the statistics all the time and keeps the extremes."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.engine, self.over = engine, threading.Event()
        self.most_waiting = self.most_running = self.most_blocks = 0

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()

    def run(self) -> None:
        while not self.over.wait(0.001):
            stats = self.engine.stats
            self.most_waiting = max(self.most_waiting, stats["num_waiting"])
            self.most_running = max(self.most_running, stats["num_running"])
            self.most_blocks = max(self.most_blocks, stats["blocks_used"])


@pytest.fixture(scope="module")
def engine_path(smollm2_host_engine: Path) -> Path:
    return smollm2_host_engine


@pytest.fixture(scope="module")
def alone(engine_path: Path) -> Iterator[tuple[list[Job], list[list[int]]]]:
    with load_engine(engine_path) as engine:
        jobs = jobs_of(engine, 32, 60)
        tokens = []
        for job in jobs:
            [output] = engine.generate([{"prompt_token_ids": job.prompt}], job.params)
            tokens.append(output.outputs[0].token_ids)
        assert [len(ids) for ids in tokens] == [job.tokens for job in jobs]
        yield jobs, tokens


def test_requests_that_join_and_leave_get_what_they_get_alone(engine_path, alone):
    jobs, expected = alone
    with load_engine(engine_path) as engine, Watch(engine) as watch:
        together, seen = run_together(engine, jobs)
        assert together == expected
        # It was a batch, and requests joined while others ran.
        assert watch.most_running >= 8
        assert sum(stats["num_running"] > 0 for stats in seen[1:]) >= 16
        assert engine.stats["num_steps"] < sum(job.tokens for job in jobs)
        assert engine.stats["blocks_used"] == 0


@pytest.mark.parametrize("policy", ["guaranteed_no_evict", "max_utilization"])
def test_a_pool_too_small_for_all_makes_requests_wait(engine_path, alone, policy):
    jobs, expected = alone
    config = {"kv_cache_config": KvCacheConfig(max_tokens=384), "scheduler_config": SchedulerConfig(policy=policy)}
    with load_engine(engine_path, **config) as engine, Watch(engine) as watch:
        assert engine.info["num_blocks"] == 6
        together, _ = run_together(engine, jobs)
        assert together == expected
        assert watch.most_waiting > 0
        assert 1 < watch.most_running <= 6
        assert watch.most_blocks <= 6
        if policy == "max_utilization":
            assert engine.stats["num_preemptions"] > 0
        assert engine.stats["blocks_used"] == 0


def test_prompts_cut_into_chunks_give_the_same(engine_path, alone):
    jobs, expected = alone
    with load_engine(engine_path, scheduler_config=SchedulerConfig(max_num_tokens=48)) as engine:
        together, _ = run_together(engine, jobs)
        assert together == expected
        assert engine.stats["blocks_used"] == 0


def test_a_cancelled_request_frees_its_blocks_within_one_step(engine_path):
    with load_engine(engine_path) as engine:
        prompt = engine.tokenizer.encode(TEXT)
        params = SamplingParams(temperature=0, max_tokens=1500, ignore_eos=True)
        stays = engine.generate_stream({"prompt_token_ids": prompt[:10]}, params)
        # No two begin alike, so that each has blocks of its own.
        goes = [engine.generate_stream({"prompt_token_ids": prompt[i : i + 100]}, params) for i in range(1, 5)]
        for stream in [stays, *goes]:
            next(stream)
        # Steps go on all the time: one request runs to the end of this test.
        before = wait_until(engine, lambda s: s["num_running"] == 5)
        assert before["blocks_used"] >= 9
        for stream in goes:
            stream.close()
        steps = engine.stats["num_steps"]
        after = wait_until(engine, lambda s: s["num_steps"] >= steps + 2)
        # The step that ran at the cancel may end; the next one is without them. The one that stays has made at
        # most a token a step.
        assert after["num_running"] == 1
        assert after["blocks_used"] <= -(-(10 + after["num_steps"]) // engine.info["block_size"])
        stays.close()
        wait_until(engine, lambda s: s["blocks_used"] == 0 and s["num_running"] == 0)
