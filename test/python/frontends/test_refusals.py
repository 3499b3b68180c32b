"""Bad input: each case is one `FrontendError` that says what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.frontend_models import save_config, save_model

from llmc.frontends import FrontendError, ImportOptions, import_checkpoint, import_module


def edit_config(folder: Path, **changes: Any) -> Path:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return folder


def edit_tensors(folder: Path, **changes: torch.Tensor | None) -> Path:
    """Replaces, adds or (None) removes tensors of a saved model."""
    file = folder / "model.safetensors"
    tensors = {**load_file(file), **changes}
    save_file({name: tensor for name, tensor in tensors.items() if tensor is not None}, file)
    return folder


def test_unknown_architecture(tmp_path: Path) -> None:
    folder = edit_config(save_config(tmp_path, "llama"), model_type="llamma")
    with pytest.raises(FrontendError, match="unknown architecture: model_type 'llamma'"):
        import_checkpoint(folder)


def test_architecture_that_is_no_decoder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "clip"}))
    with pytest.raises(FrontendError, match="unknown architecture: 'clip' has no causal language model"):
        import_checkpoint(tmp_path)


def test_missing_tensors_are_listed(tmp_path: Path) -> None:
    changes = {"model.norm.weight": None, "model.layers.1.mlp.up_proj.weight": None}
    folder = edit_tensors(save_model(tmp_path, "llama"), **changes)
    with pytest.raises(
        FrontendError, match=r"lacks 2 tensors.*\n  model\.layers\.1\.mlp\.up_proj\.weight\n  model\.norm\.weight$"
    ):
        import_checkpoint(folder)


def test_left_over_tensors_are_listed(tmp_path: Path) -> None:
    folder = edit_tensors(save_model(tmp_path, "llama"), **{"model.layers.0.self_attn.k_scale": torch.ones(1)})
    with pytest.raises(FrontendError, match=r"holds 1 tensors that the model does not use.*\n  .*k_scale$"):
        import_checkpoint(folder)


def test_stored_rope_frequencies_are_ignored(tmp_path: Path) -> None:
    name = "model.layers.0.self_attn.rotary_emb.inv_freq"
    folder = edit_tensors(save_model(tmp_path, "llama"), **{name: torch.ones(8)})
    assert import_checkpoint(folder).ignored == [name]


def test_config_that_contradicts_the_weights(tmp_path: Path) -> None:
    folder = edit_config(save_model(tmp_path, "llama"), intermediate_size=112)
    with pytest.raises(FrontendError, match=r"config contradicts the weights: .* shape \[64, 96\].* needs \[64, 112\]"):
        import_checkpoint(folder)


def test_fewer_layers_in_the_config(tmp_path: Path) -> None:
    folder = edit_config(save_model(tmp_path, "llama"), num_hidden_layers=1)
    with pytest.raises(FrontendError, match=r"9 tensors that the model does not use \(does the config match"):
        import_checkpoint(folder)


def test_wrong_dtype(tmp_path: Path) -> None:
    folder = edit_tensors(save_model(tmp_path, "llama"), **{"model.norm.weight": torch.ones(64, dtype=torch.int32)})
    with pytest.raises(FrontendError, match=r"tensor 'model\.norm\.weight' has dtype i32"):
        import_checkpoint(folder)


def test_untied_model_without_head(tmp_path: Path) -> None:
    folder = edit_tensors(save_model(tmp_path, "llama"), **{"lm_head.weight": None})
    with pytest.raises(FrontendError, match=r"lm_head\.weight\nthe config says tie_word_embeddings = false"):
        import_checkpoint(folder)


def test_tied_model_with_another_head(tmp_path: Path) -> None:
    folder = edit_tensors(save_model(tmp_path, "llama-tied"), **{"lm_head.weight": torch.randn(128, 64)})
    with pytest.raises(FrontendError, match=r"config ties 'lm_head\.weight' to 'model\.embed_tokens\.weight'"):
        import_checkpoint(folder)


def test_tied_model_with_a_copy_of_the_head(tmp_path: Path) -> None:
    folder = save_model(tmp_path, "llama-tied")
    embedding = load_file(folder / "model.safetensors")["model.embed_tokens.weight"]
    imported = import_checkpoint(edit_tensors(folder, **{"lm_head.weight": embedding.clone()}))
    assert imported.ignored == ["lm_head.weight"]
    assert "lm_head" not in str(imported.module)


def test_attention_outside_the_interface(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "falcon", "num_hidden_layers": 1}))
    with pytest.raises(FrontendError, match="falcon models of transformers do not take their attention from outside"):
        import_checkpoint(tmp_path)


def test_mixture_of_experts(tmp_path: Path) -> None:
    sizes = {"num_hidden_layers": 1, "hidden_size": 32, "intermediate_size": 32, "vocab_size": 64}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "mixtral", **sizes}))
    with pytest.raises(FrontendError, match=r"mixture of experts \(MixtralExperts at model\.layers\.0\.mlp\.experts\)"):
        import_checkpoint(tmp_path)


@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
def test_unknown_rope_type(tmp_path: Path, key: str) -> None:
    rope = {"rope_type": "spiral", "factor": 2.0, "rope_theta": 10000.0}
    folder = edit_config(save_config(tmp_path, "llama"), **{key: rope})
    with pytest.raises(FrontendError, match="unknown rope type 'spiral'"):
        import_checkpoint(folder)


def test_rope_that_depends_on_the_length(tmp_path: Path) -> None:
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    folder = edit_config(save_config(tmp_path, "llama"), rope_parameters=rope)
    with pytest.raises(FrontendError, match="compile with max_seq_len <= 256"):
        import_checkpoint(folder)
    with pytest.raises(FrontendError, match="compile with max_seq_len <= 256"):
        import_checkpoint(folder, ImportOptions(max_seq_len=257))
    assert "inv_freq" in str(import_checkpoint(folder, ImportOptions(max_seq_len=256)).module)


def test_field_that_the_model_class_ignores(tmp_path: Path) -> None:
    folder = edit_config(save_config(tmp_path, "llama"), attn_logit_softcapping=50.0)
    with pytest.raises(FrontendError, match=r"LlamaConfig ignores .*\n  attn_logit_softcapping = 50\.0"):
        import_checkpoint(folder)


def test_unsupported_operator_names_module_and_line() -> None:
    class Inner(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.i0(x)

    class Outer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x) + 1

    with pytest.raises(FrontendError, match=r"unsupported operators:\n  .*i0 in inner \(.*test_refusals\.py:\d+\)"):
        import_module(Outer(), (torch.randn(4, 4),))


def test_command_line_prints_the_message_alone(tmp_path: Path) -> None:
    folder = edit_config(save_config(tmp_path, "llama"), model_type="llamma")
    command = [sys.executable, "-m", "llmc.frontends", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.splitlines() == [f"error: unknown architecture: model_type 'llamma' in {folder}"]
