"""Reused KV blocks against computed ones on a compiled engine."""

import pytest
from support import tiny_llama

from llmc.compiler.cli import main


def compile_engine(root, *options):
    model = tiny_llama.save_model(root / "model")
    command = ["compile", str(model), "-o", str(root / "engine"), "--quiet", "--dtype", "float32", "--no_cache"]
    assert main([*command, "--max_num_tokens", "64", "--max_batch_size", "4", *options]) == 0
    return root / "engine"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_engine(tmp_path_factory.mktemp("prefix reuse"))


@pytest.fixture(scope="module")
def small_blocks(tmp_path_factory):
    return compile_engine(tmp_path_factory.mktemp("small blocks"), "--block_size", "16")


def test_reuse_changes_no_bit(compiled):
    from llmc.runtime import KvCacheConfig, SamplingParams, SchedulerConfig, load_engine

    params = SamplingParams(temperature=0, max_tokens=8, ignore_eos=True, logprobs=0)
    results = {}
    for reuse in (False, True):
        for max_num_tokens in (32, 64):
            config = SchedulerConfig(max_num_tokens=max_num_tokens)
            kv = KvCacheConfig(enable_block_reuse=reuse)
            with load_engine(compiled, scheduler_config=config, kv_cache_config=kv) as engine:
                block = engine.info["block_size"]
                common = [(i * 37) % 250 for i in range(block)]
                prompts = [common + [(i * k) % 250 for i in range(31)] for k in (3, 5, 7)]
                runs = [engine.generate([prompt], params)[0] for prompt in prompts]
                expected = [0, block, block] if reuse else [0, 0, 0]
                assert [run.num_cached_tokens for run in runs] == expected
                results[reuse, max_num_tokens] = [run.outputs for run in runs]
    assert all(result == results[False, 64] for result in results.values())


def test_no_history_changes_an_answer(small_blocks):
    """Alone or together, reused, preempted, swapped to host memory or forked: the same bits."""
    from llmc.runtime import KvCacheConfig, SamplingParams, SchedulerConfig, load_engine

    prompts = [[(7 + i * k) % 250 for i in range(5 + 6 * k)] for k in range(1, 7)]

    def answers(n, policy, together, **kv):
        params = SamplingParams(temperature=1.0, seed=3, max_tokens=40, ignore_eos=True, logprobs=0, n=n)
        config = SchedulerConfig(max_num_tokens=16, policy=policy)
        with load_engine(small_blocks, scheduler_config=config, kv_cache_config=KvCacheConfig(**kv)) as engine:
            batches = [prompts] if together else [[prompt] for prompt in prompts]
            outputs = [output.outputs for batch in batches for output in engine.generate(batch, params)]
            return outputs, engine.stats

    def check_same(found, right):
        for left, other in zip(found, right, strict=True):
            assert [(one.token_ids, one.logprobs) for one in left] == [(one.token_ids, one.logprobs) for one in other]

    singles, _ = answers(1, "guaranteed_no_evict", False, enable_block_reuse=False)
    alone, stats = answers(2, "guaranteed_no_evict", False, enable_block_reuse=False)
    assert stats["num_forks"] == len(prompts)
    check_same([outputs[:1] for outputs in alone], singles)
    for reuse in (False, True):
        check_same(answers(2, "guaranteed_no_evict", True, enable_block_reuse=reuse)[0], alone)
        for host_memory in (None, 2**26):
            found, stats = answers(
                2, "max_utilization", True, max_tokens=128, enable_block_reuse=reuse, host_memory=host_memory
            )
            check_same(found, alone)
            assert stats["num_preemptions"] > 0
            assert (stats["num_blocks_swapped_in"] > 0) == (host_memory is not None)
