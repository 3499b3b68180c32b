"""Operators that have an op of their own in the `llm` dialect."""

from __future__ import annotations

from typing import Any

from llmc.dialects import llm
from llmc.frontends.convert.builder import Builder
from llmc.frontends.convert.registry import lowers
from llmc.frontends.convert.torch_op import TorchOp
from llmc.frontends.convert.values import MaskToken, Operand, Shape, Tensor, folded, static_elements
from llmc.frontends.errors import FrontendError


@lowers("aten.embedding")
def _embedding(builder: Builder, op: TorchOp, table: Operand, ids: Tensor, *_: object) -> Any:
    ids = builder.read(ids)
    shape = op.result.shape
    width = shape[-1]
    rows = _rows(folded(ids.shape))
    flat = builder.reshaped_value(ids.value, folded(ids.shape), rows)
    value = builder.unfolded_value(table)
    result = llm.EmbeddingOp(builder.type((*rows, width), builder.f32), flat, value).result
    return Tensor(builder.reshaped_value(result, (*rows, width), folded(shape)), shape)


def _rows(shape: Shape) -> Shape:
    """The shape with all dimensions merged."""
    return (None,) if None in shape else (static_elements(shape),)


@lowers("aten.index.Tensor")
def _index(builder: Builder, op: TorchOp, table: Operand, indices: list[Tensor]) -> Any:
    # GPT-J reads its sines and cosines out of a table by position.
    if len(indices) != 1 or len(table.shape) != 2:
        raise FrontendError("indexing other than rows of a table by id")
    return _embedding(builder, op, table, indices[0])


@lowers("aten.layer_norm")
def _layer_norm(
    builder: Builder,
    op: TorchOp,
    operand: Operand,
    normalized_shape: list[int],
    weight: Operand | None = None,
    bias: Operand | None = None,
    eps: float | None = 1e-5,
    *_: object,
) -> Any:
    if len(normalized_shape) != 1:
        raise FrontendError(f"layer norm over {len(normalized_shape)} dimensions")
    operand = builder.read(operand)
    result = llm.LayerNormOp(
        operand.value.type,
        operand.value,
        eps,
        gamma=builder.optional_value(weight),
        beta=builder.optional_value(bias),
    ).result
    return Tensor(result, operand.shape)


@lowers("aten.rms_norm")
def _rms_norm(
    builder: Builder,
    op: TorchOp,
    operand: Operand,
    normalized_shape: list[int],
    weight: Operand | None = None,
    eps: float | None = None,
) -> Any:
    if len(normalized_shape) != 1:
        raise FrontendError(f"RMS norm over {len(normalized_shape)} dimensions")
    operand = builder.read(operand)
    epsilon = 1.1920928955078125e-07 if eps is None else eps  # torch's default: the float32 machine epsilon
    return Tensor(
        llm.RmsNormOp(operand.value.type, operand.value, epsilon, gamma=builder.optional_value(weight)).result,
        operand.shape,
    )


@lowers("llmc.mask", unread=(0,))
def _mask(builder: Builder, op: TorchOp, like: None, window: int) -> Any:
    return MaskToken(window)


@lowers("llmc.attention")
def _attention(
    builder: Builder,
    op: TorchOp,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: object,
    sinks: Operand | None,
    scale: float,
    softcap: float,
) -> Any:
    if not isinstance(mask, MaskToken):
        raise FrontendError("the model changes the attention mask before it uses it")
    shape = op.result.shape
    result = llm.AttentionOp(
        builder.type(shape[1:], builder.f32),
        _heads_last(builder, query),
        _heads_last(builder, key),
        _heads_last(builder, value),
        scale,
        sinks=builder.optional_value(sinks),
        causal=True,
        window=mask.window or None,
        softcap=softcap or None,
    ).result
    return Tensor(result, shape)


def _heads_last(builder: Builder, operand: Operand) -> Any:
    """[1, H, T, D] as rows of heads: [T, H, D]."""
    return builder.transpose(builder.read(operand).value, [1, 0, 2])
