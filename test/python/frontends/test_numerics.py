"""The imported graph computes what transformers computes.

The graph runs by its meaning (`convert-llm-to-linalg`) in float32, on the weights read through the checkpoint; the
reference is transformers' own eager forward in float32. Both round differently in sums of at most a few hundred terms,
over a few layers of values near 1: 2e-4 is a dozen times the error seen.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from support.dense import TOKENS, logits_of, reference_logits
from support.execute import Executable
from support.frontend_models import FAMILIES, save_model

from llmc.frontends import ImportOptions, import_checkpoint, import_module


def check(folder: Path, first_position: int = 0, options: ImportOptions | None = None, tolerance: float = 2e-4) -> None:
    imported = import_checkpoint(folder, options)
    tokens = np.random.default_rng(3).integers(3, imported.config.vocab_size, TOKENS)
    positions = np.arange(first_position, first_position + TOKENS)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    expected = reference_logits(model.eval(), tokens, positions)
    assert expected.std() > 0.01  # a model that says the same everywhere would prove nothing
    np.testing.assert_allclose(logits_of(imported, tokens, positions), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("family", FAMILIES)
def test_logits(tmp_path: Path, family: str) -> None:
    check(save_model(tmp_path, family))


@pytest.mark.parametrize("family", [name for name in FAMILIES if name.startswith("llama-l") or "yarn" in name])
def test_scaled_rope_beyond_its_original_length(tmp_path: Path, family: str) -> None:
    check(save_model(tmp_path, family), first_position=200)


def test_dynamic_rope_within_its_limit(tmp_path: Path) -> None:
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    check(save_model(tmp_path, "llama", rope_parameters=rope), options=ImportOptions(max_seq_len=256))


def test_long_rope_within_its_original_length(tmp_path: Path) -> None:
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": list(np.linspace(1, 2, 8)),
        "long_factor": list(np.linspace(1, 30, 8)),
        "factor": 4.0,
        "original_max_position_embeddings": 64,
    }
    folder = save_model(tmp_path, "llama", rope_parameters=rope)
    check(folder, options=ImportOptions(max_seq_len=64))


def test_untied_bfloat16_checkpoint(tmp_path: Path) -> None:
    from support.frontend_models import random_model

    random_model("qwen2").to(torch.bfloat16).save_pretrained(tmp_path)
    check(tmp_path)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: torch.nn.functional.softmax(x, -1), (7, 8)),
        (lambda x: x.var(-1, correction=0, keepdim=True) + x.clamp(-0.5, 0.5), (7, 8)),
        (lambda x: torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2), (7, 8)),
        (lambda x: x.view(1, 7, 2, 4).transpose(1, 2) @ x.view(1, 7, 2, 4).permute(0, 2, 3, 1), (1, 7, 8)),
        (lambda x: torch.cat([piece * 2 for piece in x.chunk(3, -1)][::-1], -1), (1, 7, 8)),
        (lambda x: (x**3).mean(-1) - x.amax(-1).abs().sqrt(), (1, 7, 8)),
        (lambda x: x.repeat_interleave(2, dim=-1) / (1 + torch.exp(-x.repeat(1, 1, 2))), (1, 7, 8)),
        (lambda x: torch.where(x > 0, x, 2 * x), (7, 8)),
        (lambda x: x.unbind(-1)[3] + torch.rsub(x.select(-1, 2), 1.5), (1, 7, 8)),
        (lambda x: torch.nn.functional.rms_norm(x, (8,)), (1, 7, 8)),
    ],
)
def test_operators(function: Any, shape: tuple[int, ...]) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return function(x)

    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    result = Executable(str(import_module(Module(), (x,)).module))(x.reshape(shape[-2:]).numpy())[0]
    expected = function(x).numpy()
    np.testing.assert_allclose(result, expected.reshape(result.shape), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_smollm2(smollm2: Path) -> None:
    """Real weights: the logits agree, and so does every most likely token."""
    imported = import_checkpoint(smollm2)
    tokens = np.array([1, 504, 3575, 282, 4649, 314, 7042, 30, 1116, 314, 253, 2183, 282, 1838, 281, 253])
    positions = np.arange(len(tokens))
    model = transformers.LlamaForCausalLM._from_config(imported.config, dtype=torch.float32).eval()
    state = {name: torch.from_numpy(np.array(imported.checkpoint.read(name))) for name in imported.checkpoint.names()}
    model.load_state_dict(state, strict=False)
    model.tie_weights()
    expected = reference_logits(model, tokens, positions)
    logits = logits_of(imported, tokens, positions)
    np.testing.assert_allclose(logits, expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(logits.argmax(-1), expected.argmax(-1))
