"""load_engine, generate, streams and errors on the toy engine."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pytest

from llmc.runtime import (
    LLM,
    BadEngineError,
    EngineError,
    EngineNotFoundError,
    KvCacheConfig,
    RequestRefusedError,
    SamplingParams,
    SchedulerConfig,
    StrippedEngineError,
    UnsupportedEngineError,
    load_engine,
)

GREEDY = SamplingParams(temperature=0, max_tokens=24, ignore_eos=True)


def test_generate_takes_text_ids_and_lists(toy):
    with load_engine(toy, num_threads=2) as engine:
        text, ids, mapping = engine.generate(["abc", [1, 2, 3, 4], {"prompt_token_ids": [5, 6]}], GREEDY)
        assert text.prompt == "abc" and text.prompt_token_ids[0] == 1
        assert len(ids.outputs[0].token_ids) == 24
        assert mapping.prompt_token_ids == [5, 6]
        assert all(o.finished and o.outputs[0].finish_reason == "length" for o in (text, ids, mapping))
        assert engine.generate([5, 6], GREEDY)[0].outputs[0].token_ids == mapping.outputs[0].token_ids
        assert engine.generate("abc", GREEDY)[0].outputs[0].text == text.outputs[0].text


def test_stream_equals_generate(toy):
    with load_engine(toy) as engine:
        whole = engine.generate("abc", GREEDY)[0].outputs[0]
        deltas = list(engine.generate_stream("abc", GREEDY))
        assert [id for delta in deltas for id in delta.token_ids] == whole.token_ids
        assert "".join(delta.text for delta in deltas) == whole.text
        assert deltas[-1].finish_reason == "length"
        assert all(delta.finish_reason is None for delta in deltas[:-1])


def test_leaving_a_stream_cancels_the_request(toy):
    with load_engine(toy) as engine:
        for _ in engine.generate_stream("abc", SamplingParams(max_tokens=100, ignore_eos=True)):
            break
        engine.generate("abc", GREEDY)  # a step after the cancel
        assert engine.stats["blocks_used"] == 0
        assert engine.stats["num_running"] == 0


def test_stop_string_ends_the_request_and_frees_its_blocks(toy):
    with load_engine(toy) as engine:
        params = SamplingParams(temperature=0, max_tokens=100, ignore_eos=True)
        text = engine.generate("abc", params)[0].outputs[0].text
        stop = text[10:13]
        params.stop = [stop, "not in there"]
        output = engine.generate("abc", params)[0].outputs[0]
        assert output.text == text[: text.find(stop)]
        assert (output.finish_reason, output.stop_reason) == ("stop", stop)
        assert "".join(d.text for d in engine.generate_stream("abc", params)) == output.text
        engine.generate("abc", GREEDY)
        assert engine.stats["blocks_used"] == 0


def test_stop_token_is_reported(toy):
    with load_engine(toy) as engine:
        ids = engine.generate("abc", GREEDY)[0].outputs[0].token_ids
        params = SamplingParams(temperature=0, ignore_eos=True, max_tokens=24, stop_token_ids=[ids[7]])
        output = engine.generate("abc", params)[0].outputs[0]
        assert output.token_ids == ids[: ids.index(ids[7]) + 1]
        assert output.stop_reason == ids[7]


def test_seed_decides_and_the_batch_does_not(toy):
    with load_engine(toy) as engine:
        params = [SamplingParams(max_tokens=20, seed=i, ignore_eos=True, top_p=0.8) for i in range(12)]
        together = [o.outputs[0].token_ids for o in engine.generate(["abc"] * 12, params)]
        alone = [engine.generate("abc", one)[0].outputs[0].token_ids for one in params]
        assert together == alone
        assert len({tuple(ids) for ids in together}) > 6


def test_logprobs_are_those_of_the_raw_model(toy):
    with load_engine(toy) as engine:
        params = SamplingParams(temperature=0.7, top_k=3, seed=1, max_tokens=12, ignore_eos=True, logprobs=0)
        prompt = [3, 4, 5]
        output = engine.generate([prompt], params)[0].outputs[0]
        logits = engine.forward([prompt + output.token_ids])[0].astype(np.float64)
        logprobs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        expected = [logprobs[2 + i, id] for i, id in enumerate(output.token_ids)]
        np.testing.assert_allclose(output.logprobs, expected, rtol=1e-5)
        assert output.cumulative_logprob == pytest.approx(sum(output.logprobs))


def test_forward_chooses_rows(toy):
    with load_engine(toy) as engine:
        sequences = [[1, 2, 3, 4, 5] * 10, [7], [8, 9]]
        full = engine.forward(sequences)
        assert [one.shape for one in full] == [(50, 64), (1, 64), (2, 64)]
        some = engine.forward(sequences, [[0, 49], [], [1]], chunk_tokens=7)
        np.testing.assert_array_equal(some[0], full[0][[0, 49]])
        assert some[1].shape == (0, 64)
        np.testing.assert_array_equal(some[2], full[2][[1]])


def test_chat_has_one_bos(toy):
    with LLM(toy) as llm:
        output = llm.chat([{"role": "user", "content": "hello"}], GREEDY)[0]
        assert output.prompt == "<bos>user: hello\nassistant: "
        assert output.prompt_token_ids.count(1) == 1
        deltas = llm.chat_stream([{"role": "user", "content": "hello"}], GREEDY)
        assert "".join(d.text for d in deltas) == output.outputs[0].text
        both = llm.chat([[{"role": "user", "content": "a"}], [{"role": "user", "content": "b"}]], GREEDY)
        assert len(both) == 2


def test_generation_config_is_visible(toy):
    (toy / "tokenizer" / "generation_config.json").write_text(
        json.dumps({"temperature": 0.6, "top_k": 20, "do_sample": True, "max_length": 7})
    )
    with LLM(toy) as llm:
        params = llm.get_default_sampling_params()
        assert (params.temperature, params.top_k) == (0.6, 20)


def test_threads_share_an_engine(toy):
    with load_engine(toy, kv_cache_config=KvCacheConfig(max_tokens=256)) as engine:
        expected = [engine.generate([i, i], GREEDY)[0].outputs[0].token_ids for i in range(8)]
        results = {}

        def work(i):
            results[i] = engine.generate([i, i], GREEDY)[0].outputs[0].token_ids

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [results[i] for i in range(8)] == expected


def test_options_reach_the_engine(toy):
    config = SchedulerConfig(max_batch_size=3, max_num_tokens=16, policy="max_utilization")
    kv = KvCacheConfig(max_tokens=100)
    with load_engine(toy, num_threads=1, kv_cache_config=kv, scheduler_config=config) as engine:
        info = engine.info
        assert (info["max_batch_size"], info["max_num_tokens"], info["num_blocks"]) == (3, 16, 25)
        assert info["num_threads"] == 1
        assert info["eos_token_ids"] == [0]


def test_archive_runs_like_the_folder(toy, pack):
    with load_engine(toy) as engine, load_engine(pack(toy)) as packed:
        assert packed.generate("abc", GREEDY)[0].outputs == engine.generate("abc", GREEDY)[0].outputs


def test_compressed_archive_is_refused(toy, pack):
    with pytest.raises(BadEngineError, match="compressed"):
        load_engine(pack(toy, zipfile.ZIP_DEFLATED))


def test_errors_have_their_classes(toy, make_toy, tmp_path):
    with pytest.raises(EngineNotFoundError, match="no such file or folder"):
        load_engine(tmp_path / "nowhere")
    with pytest.raises(UnsupportedEngineError, match="format version 99"):
        load_engine(make_toy("version", lambda m, p: m.update(format_version=99)))
    with pytest.raises(StrippedEngineError, match="llmc refit"):
        load_engine(make_toy("stripped", lambda m, p: m["weights"].update(bound=False)))
    (toy / "plan.json").write_text("{}")
    with pytest.raises(BadEngineError, match=r"plan\.json"):
        load_engine(toy)


def test_refused_requests_leave_nothing_behind(toy):
    with load_engine(toy) as engine:
        with pytest.raises(RequestRefusedError, match="max_seq_len 128"):
            engine.generate([[1] * 10, [1] * 200], GREEDY)
        engine.generate("abc", GREEDY)
        assert engine.stats["blocks_used"] == 0
        with pytest.raises(ValueError, match="top_p"):
            engine.generate("abc", SamplingParams(top_p=0))
        with pytest.raises(ValueError, match="32 bits"):
            engine.generate([[2**40]], GREEDY)


def test_engine_without_tokenizer_takes_token_ids_only(make_toy):
    engine_path = make_toy()
    manifest = json.loads((engine_path / "manifest.json").read_text())
    manifest["parts"] = [p for p in manifest["parts"] if not p["path"].startswith("tokenizer")]
    (engine_path / "manifest.json").write_text(json.dumps(manifest))
    for file in (engine_path / "tokenizer").iterdir():
        file.unlink()
    with load_engine(engine_path) as engine:
        output = engine.generate([1, 2], GREEDY)[0].outputs[0]
        assert len(output.token_ids) == 24
        assert output.text == ""
        with pytest.raises(BadEngineError, match="pass token ids"):
            engine.generate("abc", GREEDY)


def test_a_closed_engine_says_so(toy):
    engine = load_engine(toy)
    engine.close()
    engine.close()
    with pytest.raises(EngineError, match="NULL"):
        engine.generate([1, 2], GREEDY)


def test_no_torch_is_imported(toy):
    code = (
        "import sys; from llmc.runtime import load_engine, SamplingParams\n"
        f"load_engine({str(toy)!r}).generate('abc', SamplingParams(max_tokens=2))\n"
        "assert not {'torch', 'transformers', 'mlir'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
