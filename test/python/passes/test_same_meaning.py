"""Modules mean the same before and after the passes of the first three phases.

Runs real imports of small random models, by the meaning of their ops, on random ids.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.execute import Array, Batch, Executable, assert_same_meaning
from support.frontend_models import FAMILIES
from support.staged import (
    BATCH,
    FLOAT32,
    OPTIMIZE,
    RAISE,
    TOLERANCE,
    RandomCheckpoint,
    empty_cache,
    import_text,
    run_passes,
    token_ids,
)

#: Two sequences, of 7 and 4 tokens; the last 2 and 1 of them in a second step.
LENGTHS, SECOND = (7, 4), (2, 1)

#: Each raises, merges or places something in its own way; the others are near copies of one of them.
DISTINCT = {
    *("llama", "llama-yarn", "gemma2", "qwen3", "phi", "phi3", "gpt2", "gpt_neox"),
    *("opt", "granite", "olmo2", "cohere", "glm4"),
}


def run_paged(module: str, checkpoint: RandomCheckpoint) -> list[Array]:
    """Logits of each sequence, from two steps of a ragged batch."""
    first = [length - new for length, new in zip(LENGTHS, SECOND, strict=True)]
    step, weights = Executable(module), checkpoint.weights(module)
    cache = empty_cache(module, num_blocks=5)
    logits: list[list[Array]] = [[] for _ in LENGTHS]
    for new, past in ((first, [0, 0]), (SECOND, first)):
        batch = Batch.ragged(new, past, block=4, blocks_per_seq=2)
        sequences = [token_ids(length, seed) for seed, length in enumerate(LENGTHS)]
        tokens = np.concatenate([s[p : p + n] for s, p, n in zip(sequences, past, new, strict=True)])
        rows = np.arange(len(tokens), dtype=np.int32)[::-1].copy()  # logits in another order than tokens
        (result,) = step(tokens, batch.positions, rows, batch, cache, weights=weights)
        for sequence, part in enumerate(np.split(result[::-1], np.cumsum(new)[:-1])):
            logits[sequence].append(part)
    return [np.concatenate(parts) for parts in logits]


@pytest.mark.parametrize(
    "family", [name if name in DISTINCT else pytest.param(name, marks=pytest.mark.slow) for name in FAMILIES]
)
def test_dense_import_equals_optimised_batch(tmp_path: Path, family: str) -> None:
    """What the frontend imported for one sequence is what a ragged batch computes after all three phases."""
    dense = import_text(tmp_path, family)
    checkpoint = RandomCheckpoint(dense)
    optimised = run_passes(dense, f"{RAISE},{BATCH},{FLOAT32}")
    reference, weights = Executable(dense), checkpoint.weights(dense)
    for seed, (length, have) in enumerate(zip(LENGTHS, run_paged(optimised, checkpoint), strict=True)):
        (want,) = reference(token_ids(length, seed), np.arange(length, dtype=np.int32), weights=weights)
        np.testing.assert_allclose(have, want, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("family", ["llama", "gemma2", "gpt_neox", "gptj"])
def test_each_raise_pass(tmp_path: Path, family: str) -> None:
    before = run_passes(import_text(tmp_path, family), "llm-verify-contract,canonicalize,cse")
    checkpoint = RandomCheckpoint(before)
    inputs = token_ids(6, 0), np.arange(3, 9, dtype=np.int32)
    for name in (
        "llm-raise-norm",
        "llm-raise-rope-table",
        "func.func(llm-raise-rope)",
        "func.func(llm-raise-glu)",
        "func.func(llm-raise-attention)",
    ):
        after = run_passes(before, name)
        assert_same_meaning(
            before,
            after,
            *inputs,
            weights=checkpoint.weights(before),
            weights_after=checkpoint.weights(after),
            rtol=TOLERANCE,
            atol=TOLERANCE,
        )
        before = after


@pytest.mark.parametrize("family", ["llama", "gemma2"])
def test_each_batch_pass(tmp_path: Path, family: str) -> None:
    """A ragged batch gives the logits of its sequences alone; chosen rows are rows of all logits."""
    dense = import_text(tmp_path, family)
    raised = run_passes(dense, RAISE)
    paged = run_passes(raised, "llm-convert-to-paged{block-size=4}")
    weights = RandomCheckpoint(dense).weights(raised)
    batch = Batch.ragged(LENGTHS, [0, 0], block=4, blocks_per_seq=2)
    sequences = [token_ids(length, seed) for seed, length in enumerate(LENGTHS)]
    tokens, rows = np.concatenate(sequences), np.array([9, 0, 6], np.int32)

    def run(module: str) -> Array:
        cache = empty_cache(module, num_blocks=5)
        (logits,) = Executable(module)(tokens, batch.positions, rows, batch, cache, weights=weights)
        return logits

    every = run(paged)
    reference = Executable(raised)
    for sequence, have in zip(sequences, np.split(every, np.cumsum(LENGTHS)[:-1]), strict=True):
        (want,) = reference(sequence, np.arange(len(sequence), dtype=np.int32), weights=weights)
        np.testing.assert_allclose(have, want, rtol=TOLERANCE, atol=TOLERANCE)
    chosen = run(run_passes(paged, "llm-select-logit-rows"))
    np.testing.assert_allclose(chosen, every[rows], rtol=TOLERANCE, atol=TOLERANCE)


def assert_step_keeps_meaning(before: str, after: str, checkpoint: RandomCheckpoint) -> None:
    """Two paged modules, on one ragged batch of two new sequences."""
    batch = Batch.ragged([5, 2], [0, 0], block=4, blocks_per_seq=2)
    assert_same_meaning(
        before,
        after,
        token_ids(7, 0),
        batch.positions,
        np.array([6, 1], np.int32),
        batch,
        empty_cache(before, num_blocks=5),
        weights=checkpoint.weights(before),
        weights_after=checkpoint.weights(after),
        rtol=TOLERANCE,
        atol=TOLERANCE,
    )


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_precision_of_float32_changes_nothing(tmp_path: Path, family: str) -> None:
    dense = import_text(tmp_path, family)
    before = run_passes(dense, f"{RAISE},{BATCH}")
    after = run_passes(before, "llm-assign-precision{weights=f32 activations=f32 kv=f32}")
    assert_step_keeps_meaning(before, after, RandomCheckpoint(dense))


#: Rows of gate and up that alternate: each, 8 (a fragment of the tensor cores), and 48, half of all.
@pytest.mark.parametrize(
    ("family", "block"), [("llama-bias", 1), ("phi3", 1), ("cohere", 1), ("llama", 8), ("llama-bias", 48), ("phi3", 8)]
)
def test_merged_projections(tmp_path: Path, family: str, block: int) -> None:
    dense = import_text(tmp_path, family)
    checkpoint = RandomCheckpoint(dense)
    before = run_passes(dense, f"{RAISE},{BATCH}")
    after = run_passes(before, f"llm-merge-projections{{glu-block={block}}}")
    assert "llm.packed_glu" in after
    assert block == 1 or f"block = {block}" in after
    assert_step_keeps_meaning(before, after, checkpoint)


@pytest.mark.parametrize("family", ["llama", "gemma2", "olmo2"])
def test_bf16_is_close_to_float32(tmp_path: Path, family: str) -> None:
    """Rounding of weights and activations moves logits by a few steps of bf16 (2^-8), not more."""
    dense = import_text(tmp_path, family)
    checkpoint = RandomCheckpoint(dense)
    paged = run_passes(dense, f"{RAISE},{BATCH}")
    wide = run_paged(run_passes(paged, FLOAT32), checkpoint)
    narrow = run_paged(run_passes(paged, OPTIMIZE % ("bf16", "bf16", "bf16")), checkpoint)
    for want, have in zip(wide, narrow, strict=True):
        assert np.abs(have - want).max() < 0.05 * np.abs(want).max()
