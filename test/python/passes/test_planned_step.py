"""Kernels mean what the step meant, and a plan carried out in one arena gives the same logits.

The plan is carried out launch by launch at its limits: each kernel reads its operands out of the
arena and writes its results into it, so a buffer that is overwritten too early changes the logits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlir import ir
from support.execute import Array, Batch, Cache, Executable, assert_same_meaning
from support.frontend_models import FAMILIES
from support.staged import (
    BATCH,
    FLOAT32,
    RAISE,
    TOLERANCE,
    RandomCheckpoint,
    empty_cache,
    import_text,
    run_passes,
    token_ids,
)

from llmc.compiler.plan import evaluate
from llmc.dialects import register

#: A step of two sequences, one of them with a past, of which each needs the logits of its last row.
NEW, PAST = (5, 3), (0, 2)
TOKENS, SEQUENCES = sum(NEW), len(NEW)
LOGIT_ROWS = np.array([4, 7], np.int32)

NUMPY = {"f32": np.float32, "i32": np.int32}


#: Besides a Llama: softcap and norms behind; LayerNorm with biases and a parallel residual.
BY_DEFAULT = ("gemma2", "gpt_neox")


class PlannedStep:
    """A planned module, executed by its exported plan."""

    def __init__(self, module: str):
        self.kernels: dict[str, Executable] = {}
        with register(ir.Context()), ir.Location.unknown():
            parsed = ir.Module.parse(module)
            self.plan: dict[str, Any] = json.loads(ir.StringAttr(parsed.operation.attributes["llm.plan"]).value)
            for op in parsed.body.operations:
                if op.operation.name == "llm.kernel":
                    name = ir.StringAttr(op.operation.attributes["sym_name"]).value
                    self.kernels[name] = Executable(str(op), name)
        self.buffers = self.plan["arena"]["buffers"]
        # Bytes that no launch has written are not zero.
        self.arena = np.full(self.plan["arena"]["bytes"], 0x55, np.uint8)

    def __call__(self, inputs: dict[str, Array], batch: Batch, cache: Cache, weights: dict[str, Array]) -> Array:
        def operand(entry: dict[str, Any]) -> Array | Batch | Cache:
            if "buffer" in entry:
                return self._view(entry["buffer"]).copy()
            if "weight" in entry:
                return weights[entry["weight"]]
            if "input" in entry:
                return inputs[entry["input"]]
            return Cache([cache.layers[entry["kv"]]]) if "kv" in entry else batch

        for launch in self.plan["launches"]:
            results = self.kernels[launch["kernel"]](*map(operand, launch["operands"]))
            for buffer, result in zip(launch["results"], results, strict=True):
                self._view(buffer)[...] = result
        return self._view(self.plan["outputs"]["logits"]).copy()

    def _view(self, buffer: int) -> Array:
        entry = self.buffers[buffer]
        sizes = {"T": TOKENS, "S": SEQUENCES, "R": len(LOGIT_ROWS)}
        shape = [evaluate(extent, sizes) for extent in entry["shape"]]
        view: Array = np.ndarray(shape, NUMPY[entry["dtype"]], self.arena.data, entry["offset"])
        assert view.nbytes == entry["bytes"], "the step is as large as the plan allows"
        return view


@pytest.mark.parametrize(
    ("family", "glu_block"),
    [
        ("llama", 8),
        *((name, 1) if name in BY_DEFAULT else pytest.param(name, 1, marks=pytest.mark.slow) for name in FAMILIES),
    ],
)
def test_plan_gives_the_logits_of_the_step(tmp_path: Path, family: str, glu_block: int) -> None:
    dense = import_text(tmp_path, family)
    step = run_passes(dense, f"{RAISE},{BATCH},{FLOAT32.replace('glu-block=1', f'glu-block={glu_block}')}")
    assert glu_block == 1 or f"block = {glu_block}" in step
    planned = run_passes(
        step,
        f"llm-pipeline-outline,llm-pipeline-plan{{max-num-tokens={TOKENS} max-batch-size={SEQUENCES}}},llm-export-plan",
    )
    checkpoint = RandomCheckpoint(dense)
    weights = checkpoint.weights(step) | _constants(planned)
    batch, cache = Batch.ragged(NEW, PAST, block=4, blocks_per_seq=2), _random_cache(step)
    tokens = token_ids(TOKENS, 0)
    (want,) = Executable(step)(tokens, batch.positions, LOGIT_ROWS, batch, cache.copy(), weights=weights)
    inputs = {"tokens": tokens, "positions": batch.positions, "logit_rows": LOGIT_ROWS}
    have = PlannedStep(planned)(inputs, batch, cache, weights)
    np.testing.assert_allclose(have, want, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("family", ["llama", *(pytest.param(name, marks=pytest.mark.slow) for name in BY_DEFAULT)])
def test_each_outline_pass(tmp_path: Path, family: str) -> None:
    dense = import_text(tmp_path, family)
    before = run_passes(dense, f"{RAISE},{BATCH},{FLOAT32}")
    weights = RandomCheckpoint(dense).weights(before)
    batch = Batch.ragged(NEW, PAST, block=4, blocks_per_seq=2)
    inputs = token_ids(TOKENS, 0), batch.positions, LOGIT_ROWS, batch, _random_cache(before)
    for name in ("llm-form-kernels", "llm-outline-kernels"):
        after = run_passes(before, name)
        assert_same_meaning(before, after, *inputs, weights=weights, rtol=TOLERANCE, atol=TOLERANCE)
        before = after


def _random_cache(step: str) -> Cache:
    """A cache whose past is random."""
    cache = empty_cache(step, num_blocks=5)
    for pool in cache.arrays():
        pool[...] = np.random.default_rng(1).standard_normal(pool.shape)
    return cache


def _constants(module: str) -> dict[str, Array]:
    """Parameters that the module gives the value of."""
    found = {}
    with register(ir.Context()), ir.Location.unknown():
        for op in ir.Module.parse(module).body.operations:
            attributes = op.operation.attributes
            if op.operation.name == "llm.parameter" and "value" in attributes:
                value = ir.DenseElementsAttr(attributes["value"])
                found[ir.StringAttr(attributes["sym_name"]).value] = np.array(value)
    return found
