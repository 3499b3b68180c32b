"""Profiles of a step, and what a step has to move and to compute."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmc.compiler.cli import main
from llmc.runtime import Profiler
from llmc.runtime.errors import InvalidArgumentError
from llmc.runtime.step_cost import StepCost, StepShape

ToyMaker = Callable[..., Path]


def tiny_plan() -> tuple[dict[str, Any], dict[str, Any]]:
    """An embedding, a linear, attention with 4 query and 2 KV heads of 8, and a norm of the logit rows."""
    weights = [
        {"name": "table", "shape": [100, 16], "dtype": "bf16"},
        {"name": "w", "shape": [32, 16], "dtype": "bf16"},
        {"name": "gamma", "shape": [32], "dtype": "f32"},
    ]
    buffers = [
        {"shape": ["T", 16], "dtype": "bf16"},
        {"shape": ["T", 32], "dtype": "f32"},
        {"shape": ["R", 32], "dtype": "f32"},
        {"shape": [4096], "dtype": "u8"},
    ]
    launches = [
        {"kernel": 0, "args": [{"input": "tokens"}, {"weight": "table"}, {"buffer": 0}]},
        {"kernel": 1, "args": [{"tensor_map": {"base": {"weight": "w"}}}, {"buffer": 0}, {"i32": "T"}, {"buffer": 1}]},
        {"kernel": 2, "args": [{"buffer": 1}, {"kv": "k", "layer": 0}, {"kv": "v", "layer": 0}, {"buffer": 3}]},
        {"kernel": 3, "args": [{"buffer": 1}, {"weight": "gamma"}, {"buffer": 2}]},
    ]
    kernels = [{"name": a, "anchor": a} for a in ("embedding", "linear", "attention", "norm")]
    layer = {"heads": 2, "head_dim": 8, "v_head_dim": 8, "dtype": "bf16"}
    plan = {
        "arena": {"buffers": buffers},
        "kernels": kernels,
        "kv_cache": {"layers": [layer]},
        "ranges": [{"max_tokens": 64, "launches": launches}],
    }
    return {"weights": {"tensors": weights}}, plan


def test_cost_of_a_prefill() -> None:
    costs = StepCost(*tiny_plan()).of(StepShape(sequences=2, tokens=3, context=5))
    tokens, rows = 6, 2
    assert costs["embedding"].bytes == tokens * 16 * 2 * 2
    assert costs["linear"].bytes == 32 * 16 * 2 + tokens * (16 * 2 + 32 * 4)
    assert costs["linear"].flops == 2 * tokens * 32 * 16
    # Every sequence's 5 tokens of K and V; the workspace is nobody's operand.
    assert costs["attention"].bytes == tokens * 32 * 4 + 2 * (2 * 5 * 2 * 8 * 2)
    assert costs["attention"].flops == 2 * (2 * 2 * 4 * 8 * (3 + 4 + 5))
    # Logit rows only, though the input has all tokens.
    assert costs["norm"].bytes == 32 * 4 + rows * 2 * 32 * 4


def test_cost_of_a_window() -> None:
    manifest, plan = tiny_plan()
    plan["kv_cache"]["layers"][0]["window"] = 4
    cost = StepCost(manifest, plan).of(StepShape(1, 1, 9))["attention"]
    assert cost.bytes == 32 * 4 + 2 * (4 * 2 * 8 * 2)
    assert cost.flops == 2 * (2 * 4 * 8 * 4)


def test_profile_of_an_engine(make_toy: ToyMaker) -> None:
    with Profiler(make_toy(), num_threads=1) as profiler:
        assert profiler.bandwidth() > 0
        profile = profiler.step(num_sequences=2, num_tokens=1, context=7, repeats=3)
        assert profile.seconds > 0
        assert profile.kernels
        assert all(kernel.seconds > 0 and kernel.launches > 0 for kernel in profile.kernels)
        with pytest.raises(InvalidArgumentError, match="exceeds the engine's limits"):
            profiler.step(num_sequences=1000)


def test_bench_command(make_toy: ToyMaker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine, out = make_toy(), tmp_path / "figures.json"
    arguments = ["bench", str(engine), "--profile", "--batch", "1", "2", "--input", "5", "--prefill", "8"]
    assert main([*arguments, "--repeats", "2", "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "of floor" in printed and "sum of kernels" in printed and "the step" in printed
    rows = json.loads(out.read_text())["rows"]
    assert [(row["phase"], row["sequences"], row["tokens"]) for row in rows] == [
        ("decode", 1, 1),
        ("decode", 2, 1),
        ("prefill", 1, 8),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--batch", "0"], "--batch takes sizes of 1 or more"),
        (["--batch", "--prefill"], "nothing to measure"),
        (["--profile", "--batch", "9000"], "exceeds the engine's limits"),
    ],
)
def test_bad_options(make_toy: ToyMaker, capsys: pytest.CaptureFixture[str], options: list[str], message: str) -> None:
    assert main(["bench", str(make_toy()), *options]) == 2
    assert message in capsys.readouterr().err
