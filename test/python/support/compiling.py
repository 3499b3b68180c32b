"""Engines from the command line, and what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llmc.compiler.cli import main
from support.dense import TOKENS

PROMPT = np.random.default_rng(3).integers(3, 128, TOKENS)


def compiled(model: Path, out: Path, *options: str) -> Path:
    """In float32, so that what is not quantized is exact."""
    command = ["compile", str(model), "-o", str(out), "--quiet", "--no_cache", "--max_num_tokens", "64"]
    assert main([*command, "--max_batch_size", "4", "--dtype", "float32", *options]) == 0
    return out


def logits(engine: Path) -> np.ndarray:
    from llmc.runtime import load_engine

    with load_engine(engine) as loaded:
        return loaded.forward([PROMPT.tolist()])[0]


def refusal(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    capsys.readouterr()
    assert main([*command, "--quiet"]) == 2
    return capsys.readouterr().err
