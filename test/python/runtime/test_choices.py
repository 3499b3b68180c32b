"""Several answers to one prompt: n and best_of, on the toy engine."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from llmc.runtime import KvCacheConfig, SamplingParams, SchedulerConfig, StructuredOutputs, load_engine
from llmc.runtime.async_engine import AsyncEngine

PARAMS = SamplingParams(max_tokens=12, ignore_eos=True, seed=5)
PROMPT = [7] * 21


@pytest.fixture
def engine(toy):
    with load_engine(toy) as engine:
        yield engine


def single_answers(engine, params, count):
    alone = [replace(params, n=1, best_of=None, seed=params.seed + i) for i in range(count)]
    return [engine.generate([PROMPT], one)[0].outputs[0] for one in alone]


def told(answers):
    return [(one.text, one.token_ids, one.finish_reason, one.logprobs) for one in answers]


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("logprobs", [None, 2])
def test_n_answers_are_those_of_single_requests(toy, reuse, logprobs):
    params = replace(PARAMS, n=5, logprobs=logprobs)
    with load_engine(toy, kv_cache_config=KvCacheConfig(enable_block_reuse=reuse)) as engine:
        alone = single_answers(engine, params, 5)
    with load_engine(toy, kv_cache_config=KvCacheConfig(enable_block_reuse=reuse)) as engine:
        [output] = engine.generate([PROMPT], params)
        assert told(output.outputs) == told(alone)
        assert [one.index for one in output.outputs] == [0, 1, 2, 3, 4]
        assert len({tuple(one.token_ids) for one in output.outputs}) == 5
        assert engine.stats["num_forks"] == 4
        assert engine.stats["num_prompt_tokens"] == 21 + 4
        assert output.num_cached_tokens == 0 and output.finished


def test_n_beside_other_requests_under_preemption(toy):
    params = replace(PARAMS, n=4, max_tokens=20)
    prompts = [[i % 3] * (5 + i) for i in range(8)]
    with load_engine(toy) as engine:
        alone = [told(engine.generate([prompt], params)[0].outputs) for prompt in prompts]
    scheduler = SchedulerConfig(policy="max_utilization", max_num_tokens=8)
    for host_memory in (None, 10**6):
        kv = KvCacheConfig(max_tokens=64, host_memory=host_memory)
        with load_engine(toy, scheduler_config=scheduler, kv_cache_config=kv) as engine:
            assert [told(output.outputs) for output in engine.generate(prompts, params)] == alone
            assert engine.stats["num_preemptions"] > 0


def test_without_a_seed_answers_differ(engine):
    [output] = engine.generate([PROMPT], replace(PARAMS, seed=None, n=8))
    assert len({tuple(one.token_ids) for one in output.outputs}) > 1


@pytest.mark.parametrize("logprobs", [None, 0, 3])
def test_best_of_returns_the_likeliest(engine, logprobs):
    params = replace(PARAMS, logprobs=logprobs, n=2, best_of=6)
    candidates = single_answers(engine, replace(params, logprobs=logprobs or 0), 6)
    candidates.sort(key=lambda one: np.mean(one.logprobs), reverse=True)
    [output] = engine.generate([PROMPT], params)
    assert [one.token_ids for one in output.outputs] == [one.token_ids for one in candidates[:2]]
    assert [one.index for one in output.outputs] == [0, 1]
    for one, right in zip(output.outputs, candidates, strict=False):
        assert one.logprobs == (right.logprobs if logprobs is not None else None)
        assert one.top_logprobs == (right.top_logprobs if logprobs else None)


def test_streams_name_the_answer(engine):
    params = replace(PARAMS, n=3)
    ids = {i: [] for i in range(3)}
    ends = []
    for delta in engine.generate_stream(PROMPT, params):
        ids[delta.index] += delta.token_ids
        if delta.finish_reason:
            ends.append(delta.index)
    assert sorted(ends) == [0, 1, 2]
    assert list(ids.values()) == [one.token_ids for one in single_answers(engine, params, 3)]
    best = list(engine.generate_stream(PROMPT, replace(params, best_of=5)))
    assert [(one.index, len(one.token_ids), one.finish_reason) for one in best] == [(i, 12, "length") for i in range(3)]


def test_async_answers(engine):
    async def ask(params):
        ids, ends = {}, 0
        async for delta in asynchronous.generate(PROMPT, params):
            ids.setdefault(delta.index, []).extend(delta.token_ids)
            ends += delta.finish_reason is not None
        assert ends == params.n
        return [ids[i] for i in range(params.n)]

    asynchronous = AsyncEngine(engine)
    try:
        params = replace(PARAMS, n=3)
        right = [one.token_ids for one in single_answers(engine, params, 3)]
        assert asyncio.run(ask(params)) == right
        chosen = asyncio.run(ask(replace(params, best_of=4)))
        [output] = engine.generate([PROMPT], replace(params, best_of=4))
        assert chosen == [one.token_ids for one in output.outputs]
        assert asynchronous.num_requests == 0
    finally:
        asynchronous.close()
    assert engine.stats["blocks_used"] == 0


def test_answers_stop_by_themselves(engine):
    params = replace(PARAMS, n=6, max_tokens=60, stop=["a"])
    [output] = engine.generate(["abc"], params)
    singles = [engine.generate(["abc"], replace(params, n=1, seed=5 + i))[0].outputs[0] for i in range(6)]
    assert told(output.outputs) == told(singles)
    assert len({len(one.token_ids) for one in output.outputs}) > 1


def test_each_answer_has_its_own_grammar(engine):
    structured = StructuredOutputs(choice=["ab", "ac", "b"])
    params = SamplingParams(max_tokens=10, seed=1, n=5, structured_outputs=structured)
    [output] = engine.generate(["abc"], params)
    assert {one.text for one in output.outputs} <= {"ab", "ac", "b"}


def test_prompt_logprobs_come_with_each_answer(engine):
    params = replace(PARAMS, n=2, prompt_logprobs=1)
    [output] = engine.generate([PROMPT], params)
    [single] = engine.generate([PROMPT], replace(params, n=1))
    assert output.prompt_logprobs == single.prompt_logprobs
    assert output.prompt_top_logprobs == single.prompt_top_logprobs
    assert told(output.outputs) == told(single_answers(engine, params, 2))


def test_a_processor_fails_the_prompt(engine):
    def broken(tokens, num_prompt_tokens, logits):
        raise KeyError("broken on purpose")

    with pytest.raises(ValueError, match="broken on purpose"):
        engine.generate([PROMPT], replace(PARAMS, n=3, logits_processor=broken))
    assert engine.generate([PROMPT], PARAMS)[0].finished


@pytest.mark.parametrize(
    ("bad", "message"),
    [({"n": 0}, "n must be at least 1, found 0"), ({"n": 3, "best_of": 2}, "best_of must be at least n, which is 3")],
)
def test_bad_numbers(bad, message):
    with pytest.raises(ValueError, match=message):
        SamplingParams(**bad)
