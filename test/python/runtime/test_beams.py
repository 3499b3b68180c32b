"""Beam search against transformers': the same answers with the same scores, on a small random model in float32."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import frontend_models

from llmc.compiler.cli import main
from llmc.runtime import Engine, KvCacheConfig, SamplingParams, SchedulerConfig, load_engine
from llmc.runtime.errors import InvalidArgumentError, RequestRefusedError

PROMPTS = [[3, 17, 90], [5] * 20, [(7 * i) % 128 for i in range(37)]]
OUTPUT = 12
EOS = [2, 40, 77]  # several, so that answers end at all lengths


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("beams")
    frontend_models.save_model(root / "model", "llama")
    command = [
        "compile",
        str(root / "model"),
        "-o",
        str(root / "engine"),
        "--quiet",
        "--no_cache",
        "--dtype",
        "float32",
    ]
    assert main([*command, "--max_num_tokens", "64", "--max_batch_size", "24", "--block_size", "16"]) == 0
    return root


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[Engine]:
    with load_engine(folder / "engine") as engine:
        yield engine


@pytest.fixture(scope="module")
def model() -> Any:
    return frontend_models.random_model("llama")


def params(width: int, **more: Any) -> SamplingParams:
    defaults = {"temperature": 0.0, "max_tokens": OUTPUT, "ignore_eos": True, "stop_token_ids": EOS, "logprobs": 0}
    return SamplingParams(**{**defaults, "beam_width": width, "n": width, **more})


def of_transformers(model: Any, prompt: list[int], width: int, **more: Any) -> list[tuple[list[int], float]]:
    options = {"max_new_tokens": OUTPUT, "eos_token_id": EOS, "pad_token_id": 0, **more}
    with torch.no_grad():
        found = model.generate(
            torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt)), num_beams=width,
            num_return_sequences=width, do_sample=False,
            return_dict_in_generate=True, output_scores=True, **options,
        )  # fmt: skip
    answers = []
    for row, score in zip(found.sequences[:, len(prompt) :].tolist(), found.sequences_scores.tolist(), strict=True):
        end = next((i + 1 for i, token in enumerate(row) if token in options["eos_token_id"]), len(row))
        answers.append((row[:end], score))
    return answers


def compare(output: Any, expected: list[tuple[list[int], float]], penalty: float = 1.0) -> None:
    """Scores within float32: a sum of 12 logarithms of about 5, each rounded to 5e-7."""
    assert [answer.token_ids for answer in output.outputs] == [tokens for tokens, _ in expected]
    for answer, (tokens, score) in zip(output.outputs, expected, strict=True):
        assert answer.cumulative_logprob / len(tokens) ** penalty == pytest.approx(
            score, abs=2e-5 * max(1, 12**-penalty)
        )
        assert answer.finish_reason == ("stop" if tokens[-1] in EOS else "length")


@pytest.mark.parametrize("early", [False, True, "never"])
@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.5, -0.5])
def test_answers_are_those_of_transformers(engine: Engine, model: Any, early: Any, penalty: float) -> None:
    for prompt, width in zip(PROMPTS, (3, 8, 2), strict=True):
        chosen = params(width, length_penalty=penalty, early_stopping=early)
        [output] = engine.generate([prompt], chosen)
        expected = of_transformers(model, prompt, width, length_penalty=penalty, early_stopping=early)
        compare(output, expected, penalty)
    stats = engine.stats
    assert stats["blocks_used"] == 0 and stats["num_running"] == 0 and stats["num_forks"] > 0


def test_rules_apply_to_log_probabilities(engine: Engine, model: Any) -> None:
    for ours, theirs in [
        ({"repetition_penalty": 1.7}, {"repetition_penalty": 1.7}),
        ({"no_repeat_ngram_size": 2}, {"no_repeat_ngram_size": 2}),
        ({"min_tokens": 6}, {"min_new_tokens": 6}),
        ({"bad_words": [[9], [11, 12]]}, {"bad_words_ids": [[9], [11, 12]]}),
    ]:
        for prompt in PROMPTS[:2]:
            [output] = engine.generate([prompt], params(4, **ours))
            expected = of_transformers(model, prompt, 4, **theirs)
            assert [answer.token_ids for answer in output.outputs] == [tokens for tokens, _ in expected]


def test_a_search_gives_the_same_in_any_company(folder: Path, engine: Engine) -> None:
    """Beside others, cut into chunks, preempted, swapped to host memory, without reuse: the same bits."""
    several = [
        params(5, max_tokens=40, stop_token_ids=[]),
        params(3, early_stopping="never"),
        SamplingParams(temperature=0, max_tokens=60, ignore_eos=True),
    ]
    jobs = list(itertools.product(PROMPTS, several))
    alone = [engine.generate([prompt], one)[0].outputs for prompt, one in jobs]
    for policy, reuse, host_memory, blocks in [
        ("guaranteed_no_evict", True, None, 40),
        ("guaranteed_no_evict", False, None, 26),
        ("static_batch", True, None, 40),
        ("max_utilization", True, None, 26),
        ("max_utilization", False, None, 26),
        ("max_utilization", False, 2**26, 26),
    ]:
        kv = KvCacheConfig(max_tokens=16 * blocks, enable_block_reuse=reuse, host_memory=host_memory)
        config = SchedulerConfig(policy=policy, max_num_tokens=24)
        with load_engine(folder / "engine", kv_cache_config=kv, scheduler_config=config) as other:
            together = other.generate([prompt for prompt, _ in jobs], [one for _, one in jobs])
            assert [output.outputs for output in together] == alone
            stats = other.stats
            assert stats["blocks_used"] == 0 and stats["host_blocks_used"] == 0
            if policy == "max_utilization":
                assert stats["num_preemptions"] > 0
                assert (stats["num_blocks_swapped_in"] > 0) == (host_memory is not None)


def test_n_of_the_answers_and_their_log_probabilities(engine: Engine) -> None:
    [all_of_them] = engine.generate([PROMPTS[0]], params(4, logprobs=3))
    [two] = engine.generate([PROMPTS[0]], params(4, n=2, logprobs=None))
    assert [one.token_ids for one in two.outputs] == [one.token_ids for one in all_of_them.outputs[:2]]
    assert two.outputs[0].logprobs is None
    for answer in all_of_them.outputs:
        whole = PROMPTS[0] + answer.token_ids
        logits = engine.forward([whole[:-1]])[0][len(PROMPTS[0]) - 1 :].astype(np.float64)
        logprobs = (
            logits
            - np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1, keepdims=True))
            - logits.max(1, keepdims=True)
        )
        for i, token in enumerate(answer.token_ids):
            assert answer.logprobs[i] == pytest.approx(logprobs[i, token], abs=1e-5)
            assert list(answer.top_logprobs[i]) == list(np.argsort(-logprobs[i], kind="stable")[:3])


def test_fewer_answers_than_beams(engine: Engine) -> None:
    """Two tokens, one of which ends: there are three answers of at most three tokens."""
    chosen = params(8, max_tokens=2, allowed_token_ids=[2, 5])
    [output] = engine.generate([PROMPTS[0]], chosen)
    assert sorted(answer.token_ids for answer in output.outputs) == [[2], [5, 2], [5, 5]]
    assert engine.stats["blocks_used"] == 0


def test_a_cancel_ends_the_whole_search(engine: Engine) -> None:
    stream = engine.generate_stream(PROMPTS[0], params(6, max_tokens=150, stop_token_ids=[]), timeout=0.001)
    assert {delta.finish_reason for delta in stream} <= {"timeout"}
    assert engine.stats["blocks_used"] == 0 and engine.stats["num_running"] == 0


def test_what_has_no_meaning_is_refused(engine: Engine) -> None:
    for changes, message in [
        ({"temperature": 0.5}, "temperature and a beam_width above 1 exclude each other"),
        ({"top_p": 0.5}, "top_p and a beam_width"),
        ({"top_k": 5}, "top_k and a beam_width"),
        ({"min_p": 0.5}, "min_p and a beam_width"),
        ({"prompt_logprobs": 1}, "prompt_logprobs and a beam_width"),
        ({"logits_processor": lambda *_: None}, "logits_processor and a beam_width"),
        ({"token_mask": lambda *_: None}, "token_mask and a beam_width"),
        ({"beam_width": 65, "n": 1}, r"beam_width must be in \[1, 64\], found 65"),
        ({"length_penalty": float("nan")}, "length_penalty must be in"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            engine.generate([PROMPTS[0]], params(4, **changes))
    for changes, message in [
        ({"stop": "x"}, "use stop_token_ids"),
        ({"best_of": 4}, "best_of and a beam_width"),
        ({"n": 5}, "n must be at most beam_width, which is 4, found 5"),
        ({"early_stopping": "soon"}, "early_stopping must be"),
        ({"beam_width": 0, "n": 1}, "beam_width must be at least 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            params(4, **changes)
    with pytest.raises(RequestRefusedError, match="max_batch_size is 24"):
        engine.generate([PROMPTS[0]], params(32))
