"""Prefix reuse, deadlines, priorities and policies from Python, on the toy engine."""

from __future__ import annotations

import pytest

from llmc.runtime import KvCacheConfig, RequestRefusedError, SamplingParams, SchedulerConfig, load_engine

GREEDY = SamplingParams(temperature=0, max_tokens=12, ignore_eos=True)


def outputs(engine, prompts, params=GREEDY):
    return [(o.outputs[0].token_ids, o.outputs[0].logprobs) for o in engine.generate(prompts, params)]


def test_a_known_beginning_is_not_computed_again(toy):
    with load_engine(toy) as engine:
        first, again = (engine.generate([[7] * 21], GREEDY)[0] for _ in range(2))
        assert (first.num_cached_tokens, again.num_cached_tokens) == (0, 20)
        assert first.outputs == again.outputs
        stats = engine.stats
        assert stats["num_reused_tokens"] == 20
        assert stats["num_prompt_tokens"] == 21 + 1
        assert stats["blocks_used"] == 0 and stats["blocks_idle"] > 0


def test_reuse_can_be_switched_off(toy):
    with load_engine(toy, kv_cache_config=KvCacheConfig(enable_block_reuse=False)) as engine:
        runs = [engine.generate([[7] * 21], GREEDY)[0] for _ in range(2)]
        assert [run.num_cached_tokens for run in runs] == [0, 0]
        assert engine.stats["blocks_idle"] == 0


def test_tenants_share_nothing(toy):
    with load_engine(toy) as engine:
        reused = [
            engine.generate([{"prompt_token_ids": [7] * 21, "cache_salt": salt}], GREEDY)[0].num_cached_tokens
            for salt in ("a", "b", "a")
        ]
        assert reused == [0, 0, 20]


@pytest.mark.parametrize("policy", ["guaranteed_no_evict", "max_utilization", "static_batch"])
@pytest.mark.parametrize("reuse", [False, True])
def test_policies_give_the_same_tokens(toy, policy, reuse):
    prompts = [[i % 3] * (5 + i) for i in range(16)]
    with load_engine(toy, kv_cache_config=KvCacheConfig(enable_block_reuse=False)) as engine:
        alone = [outputs(engine, [prompt])[0] for prompt in prompts]
    config = SchedulerConfig(policy=policy, max_num_tokens=8)
    kv = KvCacheConfig(max_tokens=64, enable_block_reuse=reuse)
    with load_engine(toy, scheduler_config=config, kv_cache_config=kv) as engine:
        assert outputs(engine, prompts) == alone


def test_a_timeout_ends_a_request(toy):
    with load_engine(toy) as engine:
        [output] = engine.generate("abc", GREEDY, timeout=1e-9)
        assert output.finished and output.outputs[0].finish_reason == "timeout"
        assert engine.stats["num_deadlines_missed"] == 1
        [output] = engine.generate("abc", GREEDY, timeout=1e6, priority=-5)
        assert output.outputs[0].finish_reason == "length"
        with pytest.raises(ValueError, match="timeout must be positive"):
            engine.generate("abc", GREEDY, timeout=0)
        with pytest.raises(ValueError, match=r"priority must be in \[-100, 100\]"):
            engine.generate("abc", GREEDY, priority=101)


def test_two_names_of_one_fraction(toy):
    assert KvCacheConfig(free_gpu_memory_fraction=0.5).fraction == 0.5
    with pytest.raises(ValueError, match="mean the same"):
        KvCacheConfig(free_gpu_memory_fraction=0.5, free_memory_fraction=0.4)
    with pytest.raises(ValueError, match="free_memory_fraction must be in"):
        load_engine(toy, kv_cache_config=KvCacheConfig(free_gpu_memory_fraction=1.5))


def test_a_full_queue_refuses(toy):
    config = SchedulerConfig(max_batch_size=1, max_waiting=2)
    with (
        load_engine(toy, scheduler_config=config) as engine,
        pytest.raises(RequestRefusedError, match="max_waiting is 2"),
    ):
        engine.generate([[1] * 60] * 500, SamplingParams(max_tokens=60, ignore_eos=True))


@pytest.mark.parametrize("host_memory", [None, 400, 10**6])
def test_host_memory_changes_no_token(toy, host_memory):
    prompts = [[i % 3] * (5 + i) for i in range(16)]
    with load_engine(toy, kv_cache_config=KvCacheConfig(enable_block_reuse=False)) as engine:
        alone = [outputs(engine, [prompt])[0] for prompt in prompts]
    kv = KvCacheConfig(max_tokens=64, host_memory=host_memory)
    with load_engine(toy, scheduler_config=SchedulerConfig(policy="max_utilization"), kv_cache_config=kv) as engine:
        assert outputs(engine, prompts) == alone
        stats = engine.stats
        assert stats["num_preemptions"] > 0
        assert (stats["num_blocks_swapped_in"] > 0) == (host_memory is not None)
        assert stats["host_blocks_used"] == 0


def test_host_memory_needs_preemption(toy):
    with pytest.raises(ValueError, match="positive with policy max_utilization"):
        load_engine(toy, kv_cache_config=KvCacheConfig(host_memory=1000))


def test_parts_of_blocks(toy):
    runs = {}
    for partial in (False, True):
        with load_engine(toy, kv_cache_config=KvCacheConfig(enable_partial_reuse=partial)) as engine:
            engine.generate([[7] * 21], GREEDY)
            runs[partial] = engine.generate([[7] * 10 + [3] * 5], GREEDY)[0]
            assert engine.stats["num_partially_reused_tokens"] == (2 if partial else 0)
    assert [run.num_cached_tokens for run in runs.values()] == [8, 10]
    assert runs[False].outputs == runs[True].outputs


def test_retention_priority_is_checked(toy):
    with load_engine(toy) as engine, pytest.raises(ValueError, match=r"retention_priority must be in \[0, 100\]"):
        engine.generate("abc", SamplingParams(retention_priority=101))
