"""A model that a pass refuses is the user's to change: exit code 2, its place named, no reproducer.

The frontend refuses what it sees, so the imported graph is edited here to reach each pass.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mlir import ir
from support import tiny_llama

import llmc.frontends
from llmc.compiler.cli import main


def rotates_by_other_elements(text: str) -> str:
    return text.replace("arith.negf", "math.absf", 1)


def looks_at_later_tokens(text: str) -> str:
    return text.replace("{causal, scale", "{scale", 1)


def ends_in_a_maximum(text: str) -> str:
    """Logits become their maximum, which no kernel kind holds."""

    def reduced(match: re.Match[str]) -> str:
        value, shape, place = match.groups()
        return (
            f"%max = llm.reduce max {value} {{dims = array<i64: 1>}} : {shape} -> tensor<?x1xf32> loc({place})\n"
            f"%all = llm.broadcast %max : tensor<?x1xf32> -> {shape} loc({place})\n"
            f"return %all : {shape} loc({place})"
        )

    # The place of the projection, not that of the return.
    place = re.findall(r"llm\.linear .* loc\((#\w+)\)", text)[-1]
    text = re.sub(r"(return %\S+ : \S+ loc)\(#\w+\)", rf"\1({place})", text)
    return re.sub(r"return (%\S+) : (tensor<\?x\d+xf32>) loc\((#\w+)\)", reduced, text)


@pytest.mark.parametrize(
    ("edit", "message", "module"),
    [
        (rotates_by_other_elements, "expected cosines and sines to serve rotary position embeddings only", "self_attn"),
        (looks_at_later_tokens, "expected causal attention, found attention to later tokens", "self_attn"),
        (ends_in_a_maximum, "expected only ops that a kernel kind can hold", "lm_head"),
    ],
    ids=["llm-raise-rope", "llm-convert-to-paged", "llm-form-kernels"],
)
def test_a_refusing_pass_names_the_place_in_the_model(
    edit: Callable[[str], str],
    message: str,
    module: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    original = llmc.frontends.import_checkpoint

    def edited(model: Any, options: Any, context: ir.Context) -> Any:
        imported = original(model, options, context)
        text = imported.module.operation.get_asm(enable_debug_info=True)
        assert edit(text) != text
        return dataclasses.replace(imported, module=ir.Module.parse(edit(text), context))

    monkeypatch.setattr(llmc.frontends, "import_checkpoint", edited)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    model = tiny_llama.save_model(tmp_path / "model")
    engine = tmp_path / "engine"
    capsys.readouterr()
    assert main(["compile", str(model), "-o", str(engine), "--quiet", "--no_cache"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"llmc: error: {message}")
    assert re.search(rf" in [\w.]*{module} \(\S+\.py:\d+\)", error), error
    assert "Traceback" not in error
    assert "see current operation" not in error
    assert "reproducer" not in error
    assert not engine.exists()
    assert not list(tmp_path.glob("temporary/llmc-reproducer*"))
