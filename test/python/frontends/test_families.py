"""Every family imports to `llm` IR of the expected kind."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from mlir.passmanager import PassManager
from support.frontend_models import FAMILIES, save_config, save_model

from llmc.frontends import ImportedModel, import_checkpoint


def body(imported: ImportedModel) -> list[Any]:
    function = next(op for op in imported.module.body.operations if op.operation.name == "func.func")
    return [op.operation for op in function.regions[0].blocks[0].operations]


def operations(imported: ImportedModel, name: str) -> list[Any]:
    return [op for op in body(imported) if op.name == name]


def number(attribute: Any) -> Any:
    return None if attribute is None else attribute.value


@pytest.mark.parametrize("family", FAMILIES)
def test_imports(tmp_path: Path, family: str) -> None:
    imported = import_checkpoint(save_model(tmp_path, family))
    layers = imported.config.num_hidden_layers
    counts = Counter(op.name for op in body(imported))
    assert counts["llm.attention"] == layers
    assert counts["llm.linear"] >= 4 * layers
    assert counts["llm.matmul"] == 0
    dialects = {name.split(".")[0] for name in counts}
    assert dialects <= {"llm", "arith", "math", "tensor", "func"}
    function = next(op for op in imported.module.body.operations if op.operation.name == "func.func")
    assert str(function.type) == "(tensor<?xi32>, tensor<?xi32>) -> tensor<?x128xf32>"
    with imported.module.context:
        PassManager.parse("builtin.module(llm-verify-contract)").run(imported.module.operation)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_tensor_of_the_checkpoint_is_used(tmp_path: Path, family: str) -> None:
    imported = import_checkpoint(save_model(tmp_path, family))
    unused = set(imported.checkpoint.names()) - set(imported.tensors.values()) - set(imported.ignored)
    assert not unused


@pytest.mark.parametrize("family", ["llama", "gpt_neox"])
def test_config_alone_gives_the_same_module(tmp_path: Path, family: str) -> None:
    with_weights = import_checkpoint(save_model(tmp_path / "a", family))
    without = import_checkpoint(save_config(tmp_path / "b", family))
    assert str(with_weights.module) == str(without.module)


def test_two_imports_are_identical(tmp_path: Path) -> None:
    folder = save_config(tmp_path, "gemma3")
    first, second = (import_checkpoint(folder).module.operation.get_asm(enable_debug_info=True) for _ in range(2))
    assert first == second


def test_tied_embeddings_are_one_parameter(tmp_path: Path) -> None:
    imported = import_checkpoint(save_model(tmp_path, "llama-tied"))
    assert "model.embed_tokens.weight" in imported.tensors
    assert not any("lm_head" in symbol for symbol in imported.tensors)


def test_windows_come_from_the_masks(tmp_path: Path) -> None:
    imported = import_checkpoint(save_config(tmp_path, "gemma3"))
    windows = [
        number(op.attributes["window"]) if "window" in op.attributes else None
        for op in operations(imported, "llm.attention")
    ]
    assert windows == [5, 5, 5, 5, 5, None, 5]


def test_softcap_and_scale_reach_the_attention(tmp_path: Path) -> None:
    imported = import_checkpoint(save_config(tmp_path, "gemma2", query_pre_attn_scalar=25, attn_logit_softcapping=30.0))
    attention = operations(imported, "llm.attention")[0]
    assert number(attention.attributes["scale"]) == pytest.approx(0.2)
    assert number(attention.attributes["softcap"]) == 30.0


def test_transposed_storage_becomes_a_recipe(tmp_path: Path) -> None:
    text = str(import_checkpoint(save_model(tmp_path, "gpt2")).module)
    assert (
        "llm.parameter @transformer.h.0.mlp.c_fc.weight.transposed : tensor<256x64xf32> "
        'from #llm.transpose<<#llm.source<"transformer.h.0.mlp.c_fc.weight">>>'
    ).replace("<<", "<").replace(">>>", ">>") in text


def test_operations_know_module_and_source_line(tmp_path: Path) -> None:
    imported = import_checkpoint(save_config(tmp_path, "llama"))
    location = operations(imported, "llm.linear")[0].location
    assert location.name_str == "model.layers.0.self_attn.q_proj"
    assert location.child_loc.filename.startswith("torch/nn/modules/linear.py")
    assert location.child_loc.start_line > 0


def test_torch_dialect_has_named_weights_only(tmp_path: Path) -> None:
    from llmc.frontends import ImportOptions

    text = import_checkpoint(save_config(tmp_path, "llama"), ImportOptions(keep_torch=True)).torch_text
    assert text is not None
    assert '"llmc.weight"() {llmc.name = "model.layers.1.mlp.down_proj.weight"}' in text
    assert "dense_resource" not in text
