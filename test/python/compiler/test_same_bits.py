"""Host engines: a row of a step has the same bits whatever stands beside it, and however its sequence was cut.

So tokens do not depend on batches, chunks, reuse, preemption or swapping: these only choose which rows share a step.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import frontend_models

from llmc.compiler.cli import main
from llmc.runtime import load_engine

#: Windows, caps, biases and layer norms; weights as codes with scales of rows or of groups, inputs too; vectors of both
#: lengths.
CASES = [
    ("llama", ("--dtype", "float32")),
    ("llama-bias", ("--dtype", "bfloat16")),
    ("mistral", ("--dtype", "float32")),
    ("gemma2", ("--dtype", "float32")),
    ("gemma3", ("--dtype", "bfloat16")),
    ("gpt2", ("--dtype", "float32")),
    ("cohere2", ("--dtype", "float32")),
    # Random weights predict nothing: no gate.
    ("llama", ("--qformat", "fp8_rowwise", "--no_quality_gate")),
    ("llama", ("--qformat", "int8_wo", "--no_quality_gate")),
    ("llama", ("--qformat", "int4_wo", "--no_quality_gate")),
    ("llama", ("--target", "x86-64-v3")),
    ("gemma2", ("--target", "x86-64-v3")),
]
#: Groups of 128 features share a scale.
SIZES = {"int4_wo": {"hidden_size": 128, "intermediate_size": 256}}


def sequences_of(vocab: int) -> list[list[int]]:
    rng = np.random.default_rng(0)
    return [list(map(int, rng.integers(0, vocab, length))) for length in (1, 2, 3, 5, 7, 13, 31, 49, 90)]


@pytest.mark.parametrize(("family", "options"), CASES, ids=[f"{family}-{options[1]}" for family, options in CASES])
def test_logits_do_not_depend_on_steps(family: str, options: tuple[str, ...], tmp_path: Path) -> None:
    model = frontend_models.save_model(tmp_path / "model", family, **SIZES.get(options[1], {}))
    command = ["compile", str(model), "-o", str(tmp_path / "engine"), "--quiet", "--no_cache", *options]
    assert main([*command, "--max_num_tokens", "128", "--max_batch_size", "16", "--block_size", "16"]) == 0
    with load_engine(tmp_path / "engine", num_threads=2) as engine:
        sequences = sequences_of(engine.info["vocab_size"])
        whole = [engine.forward([sequence])[0] for sequence in sequences]
        assert all(np.isfinite(logits).all() for logits in whole)
        for chunk in (1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 23, 47, 48, 49, 97, 128):
            together = engine.forward(sequences, chunk_tokens=chunk)
            backwards = engine.forward(sequences[::-1], chunk_tokens=chunk)[::-1]
            for length, right, one, other in zip(map(len, sequences), whole, together, backwards, strict=True):
                worst = max(np.abs(one - right).max(), np.abs(other - right).max())
                assert np.array_equal(one, right) and np.array_equal(other, right), (chunk, length, worst)
