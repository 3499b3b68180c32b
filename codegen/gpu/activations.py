"""Activation functions on float32 elements, by exp2 and the hardware's tanh-free forms.

Each is the definition of `llm.activation` in float32. exp2 is the approximate instruction of the
hardware (2 ulp); nothing here overflows for finite input: exponentials of large arguments become
infinity or zero, and both give the right limit.
"""

from __future__ import annotations

import math

from ..builder import Value
from ..builder.approx import erf, reciprocal

_LOG2E = math.log2(math.e)


def sigmoid(x: Value) -> Value:
    """1 / (1 + exp(-x))"""
    return reciprocal((x * -_LOG2E).exp2() + 1.0)


def tanh(x: Value) -> Value:
    """2 sigmoid(2x) - 1"""
    return 2.0 * sigmoid(x * 2.0) - 1.0


def apply(kind: str, x: Value) -> Value:
    """The activation of that name (the keyword of `llm.activation`)."""
    if kind == "identity":
        return x
    if kind == "relu":
        return x.max(0.0)
    if kind == "relu2":
        positive = x.max(0.0)
        return positive * positive
    if kind == "silu":
        return x * sigmoid(x)
    if kind == "gelu":
        return x * 0.5 * (erf(x * math.sqrt(0.5)) + 1.0)
    if kind == "gelu_tanh":
        inner = (x * x * x * 0.044715 + x) * math.sqrt(2.0 / math.pi)
        return x * sigmoid(inner * 2.0)
    if kind == "gelu_quick":
        return x * sigmoid(x * 1.702)
    if kind == "sigmoid":
        return sigmoid(x)
    if kind == "tanh":
        return tanh(x)
    raise ValueError(f"unknown activation {kind!r}")
