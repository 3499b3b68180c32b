"""A whole engine for every GPU, from a configuration alone: every kernel the planner forms is made."""

from __future__ import annotations

import json

import pytest
from support.tiny_llama import save_config

from llmc.codegen.chips import CHIPS
from llmc.compiler.driver import Compilation
from llmc.compiler.options import CompileOptions


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_config(tmp_path_factory.mktemp("tiny") / "llama")


@pytest.mark.parametrize(("target", "kernels"), [*((name, "auto") for name in CHIPS), ("sm_90", "portable")])
def test_engine(model, tmp_path, target, kernels):
    options = CompileOptions(
        target=target, kernels=kernels, max_batch_size=4, max_num_tokens=128, strip_weights=True, use_cache=False
    )
    summary = Compilation(model, options).write_engine(tmp_path / "engine")
    assert summary.target == target
    plan = json.loads((tmp_path / "engine" / "plan.json").read_text())
    manifest = json.loads((tmp_path / "engine" / "manifest.json").read_text())
    assert manifest["target"] == {"name": target, "arch": CHIPS[target].arch, "features": []}
    assert {"embedding", "norm", "linear", "rope_append", "attention", "sample"} <= {
        kernel["anchor"] for kernel in plan["kernels"]
    }
    for kernel in plan["kernels"]:
        assert kernel["shared_bytes"] <= CHIPS[target].shared_bytes
        assert kernel["pdl"] == (target in ("sm_90", "sm_100", "sm_120"))
    uses_maps = '"tensor_map"' in json.dumps(plan)
    assert uses_maps == (target == "sm_90" and kernels == "auto")
