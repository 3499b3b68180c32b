"""Reused KV blocks against computed ones on a compiled engine."""

import pytest
from support import tiny_llama

from llmc.compiler.cli import main


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    root = tmp_path_factory.mktemp("prefix reuse")
    model = tiny_llama.save_model(root / "model")
    command = ["compile", str(model), "-o", str(root / "engine"), "--quiet", "--dtype", "float32", "--no_cache"]
    assert main([*command, "--max_num_tokens", "64", "--max_batch_size", "4"]) == 0
    return root / "engine"


def test_reuse_changes_no_bit(compiled):
    """Requests one by one: steps of few tokens run other kernels, which differ in the order of their sums.

    What is left of each prompt beside the reused blocks is long enough for the kernels of prompts.
    """
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
