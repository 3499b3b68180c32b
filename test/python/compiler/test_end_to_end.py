"""From a checkpoint through the command line to tokens, against transformers on the same weights."""

import numpy as np
import pytest
from support import tiny_llama

from llmc.compiler.cli import main

PROMPT = [256, 72, 101, 108, 108, 111, 44, 32, 119, 111, 114, 108, 100]
HEAD_64, HEAD_128 = {"head_dim": 64}, {"head_dim": 128}
MHA, TIED = {"num_key_value_heads": 4}, {"tie_word_embeddings": True}


def rope(**parameters):
    # Positions up to 256 leave the original 64 behind, so that the scaling shows.
    return {"rope_parameters": {"rope_theta": 10000.0, "factor": 4.0, **parameters}}


LLAMA3 = rope(
    rope_type="llama3", low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64,
)  # fmt: skip
LINEAR = rope(rope_type="linear")
YARN = rope(rope_type="yarn", original_max_position_embeddings=64)

VARIANTS = {
    "gqa, head dim 16": {},
    "mha, head dim 128, tied": {**MHA, **HEAD_128, **TIED},
    "gqa, head dim 64, llama3 rope": {**HEAD_64, **LLAMA3},
    "mha, head dim 64, tied, linear rope": {**MHA, **HEAD_64, **TIED, **LINEAR},
    "gqa, head dim 128, yarn rope": {**HEAD_128, **YARN},
}


@pytest.fixture(scope="module", params=VARIANTS.values(), ids=VARIANTS.keys())
def compiled(request, tmp_path_factory):
    root = tmp_path_factory.mktemp("end to end")
    model = tiny_llama.save_model(root / "model", **request.param)
    command = ["compile", str(model), "-o", str(root / "engine"), "--quiet", "--dtype", "float32", "--no_cache"]
    assert main([*command, "--max_num_tokens", "64", "--max_batch_size", "4"]) == 0
    return model, root / "engine"


@pytest.fixture(scope="module")
def reference(compiled):
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(compiled[0], dtype=torch.float32)
    return model.eval()


def test_logits_agree_with_transformers(compiled, reference):
    """Float32 throughout: what differs is the order of sums."""
    import torch

    from llmc.runtime import load_engine

    sequences = [PROMPT, PROMPT[:1], PROMPT[3:8] * 9, PROMPT * 15]
    with load_engine(compiled[1]) as engine:
        logits = engine.forward(sequences)
    for ids, found in zip(sequences, logits, strict=True):
        with torch.no_grad():
            expected = reference(torch.tensor([ids])).logits[0].numpy()
        np.testing.assert_allclose(found, expected, atol=2e-3, rtol=0)


def test_greedy_text_agrees_with_transformers(compiled, reference):
    import torch

    from llmc.runtime import SamplingParams, load_engine

    with load_engine(compiled[1]) as engine:
        [output] = engine.generate([PROMPT], SamplingParams(max_tokens=24, temperature=0.0, ignore_eos=True))
    with torch.no_grad():
        expected = reference.generate(
            torch.tensor([PROMPT]), max_new_tokens=24, do_sample=False, eos_token_id=None, pad_token_id=0
        )
    assert output.outputs[0].token_ids == expected[0, len(PROMPT) :].tolist()


def test_run_prints_text(compiled, capsys):
    assert main(["run", str(compiled[1]), "Hello", "--max_tokens", "8", "--ignore_eos", "--stats"]) == 0
    captured = capsys.readouterr()
    assert captured.out.endswith("\n")
    assert "tokens/s" in captured.err


def test_a_prompt_that_is_too_long_is_one_message(compiled, capsys):
    assert main(["run", str(compiled[1]), "x" * 300]) == 2
    assert "llmc: error: " in capsys.readouterr().err
