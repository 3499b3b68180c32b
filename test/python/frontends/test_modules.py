"""Any torch module: folding of the batch dimension, operator by operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from llmc.frontends import ImportedModule, import_module

T = torch.export.Dim("T", min=2, max=1024)


class Function(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def imported(function: Callable[..., Any], *shapes: tuple[int, ...], dynamic: bool = True) -> str:
    """IR of a function of inputs [1, T, ...]."""
    inputs = tuple(torch.randn(*shape) for shape in shapes)
    sizes = {"inputs": tuple({1: T} for _ in shapes)} if dynamic else None
    return str(import_module(Function(function), inputs, sizes).module)


def test_batch_is_folded_from_inputs_and_results() -> None:
    text = imported(lambda x: x * 2, (1, 7, 8))
    assert "func.func @step(%arg0: tensor<?x8xf32>) -> tensor<?x8xf32>" in text


def test_multiplication_by_one_disappears() -> None:
    assert "arith" not in imported(lambda x: x * 1.0, (1, 7, 8))


def test_heads_are_split_and_transposed_without_batch() -> None:
    text = imported(lambda x: x.view(1, -1, 2, 4).transpose(1, 2), (1, 7, 8))
    assert "tensor.expand_shape" in text
    assert "llm.transpose" in text
    assert "-> tensor<2x?x4xf32>" in text


def test_reduction_without_kept_dimension() -> None:
    text = imported(lambda x: x.mean(-1), (1, 7, 8))
    assert "llm.reduce mean %arg0 {dims = array<i64: 1>} : tensor<?x8xf32> -> tensor<?x1xf32>" in text
    assert "-> tensor<?xf32>" in text


def test_scalar_operands_are_broadcast() -> None:
    text = imported(lambda x: x + 0.5, (1, 7, 8))
    assert "arith.constant dense<5.000000e-01> : tensor<f32>" in text
    assert "llm.broadcast %cst sizes(%dim) : tensor<f32> -> tensor<?x8xf32>" in text


def test_strided_slices_and_stack() -> None:
    text = imported(lambda x: torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2), (1, 7, 8))
    assert "tensor.extract_slice %arg0[0, 1] [%dim, 4] [1, 2]" in text
    assert "tensor.concat dim(2)" in text
    assert "-> tensor<?x8xf32>" in text


def test_merged_dynamic_dimension_has_its_own_size() -> None:
    text = imported(lambda x: x.view(-1, 4).mul(2).view(1, -1, 8), (1, 7, 8))
    assert "-> tensor<?x8xf32>" in text


def test_product_of_activations() -> None:
    text = imported(lambda a, b: a @ b.transpose(-1, -2), (1, 7, 8), (1, 7, 8))
    assert "llm.matmul" in text


def test_weights_are_read_as_linear() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.SiLU(), torch.nn.Linear(16, 8, bias=False))
    result: ImportedModule = import_module(module, (torch.randn(1, 7, 8),), {"input": {1: T}})
    text = str(result.module)
    assert 'llm.parameter @"0.weight" : tensor<16x8xf32> from #llm.source<"0.weight">' in text
    assert text.count("llm.linear") == 2
    assert "llm.activation silu" in text
    assert sorted(result.weights) == ["0.bias", "0.weight", "2.weight"]
    torch.testing.assert_close(torch.from_numpy(result.weights["0.weight"]), module[0].weight.detach())


def test_layer_norm_and_gelu() -> None:
    module = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.GELU(approximate="tanh"), torch.nn.GELU())
    text = str(import_module(module, (torch.randn(4, 8),)).module)
    assert "llm.layer_norm" in text
    assert "llm.activation gelu_tanh" in text
    assert "llm.activation gelu %" in text


@pytest.mark.parametrize("function", [lambda x: x[:, :2], lambda x: x.sum(1), lambda x: torch.cat((x, x), 1)])
def test_mixing_tokens_is_refused(function: Callable[..., Any]) -> None:
    from llmc.frontends import FrontendError

    with pytest.raises(FrontendError, match=r"the tokens"):
        imported(function, (1, 7, 8))
