"""A random problem for one launch of a kernel: its buffers, and how its results are compared.

A Problem holds the buffers of one launch in the order of the kernel's operands; `errors` compares
the results with a float32 or float64 reference as ||out - ref|| / ||ref|| (NaN counts as infinite).
Results stored in bf16 carry its rounding: 2^-9 a value, 1.7e-3 in norm.
"""

from __future__ import annotations

from typing import Any

import torch

BLOCK = 64
BF16 = 3e-3
NAN = float("nan")


def relative(out: torch.Tensor, ref: torch.Tensor) -> float:
    out, ref = out.double(), ref.double()
    if not torch.isfinite(out).all():
        return float("inf")
    return ((out - ref).norm() / ref.norm().clamp_min(1e-30)).item()


def randn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, device="cuda").to(dtype)


def poison(tensor: torch.Tensor) -> None:
    """Fills it with NaN."""
    if tensor.dtype == torch.float8_e4m3fn:
        tensor.view(torch.uint8).fill_(0x7F)
    else:
        tensor.fill_(NAN)


def half_of(case: dict[str, Any]) -> torch.dtype:
    """The 16-bit type of a case."""
    return torch.float16 if case.get("dtype") == "f16" else torch.bfloat16


class Problem:
    """Buffers and sizes of one launch."""

    def __init__(self, tokens: int):
        self.tokens = tokens
        self.sizes = {"T": tokens, "R": tokens, "rows": tokens, "max_rows": tokens, "S": 1, "B": 1, "NB": 1}
        self.operands: list[Any] = []
        self.results: list[torch.Tensor] = []
        self.workspace: torch.Tensor | None = None

    def poison(self) -> None:
        for result in self.results:
            poison(result)

    def outputs(self) -> list[torch.Tensor]:
        return self.results

    def errors(self) -> list[dict[str, Any]]:
        raise NotImplementedError

    @staticmethod
    def error(name: str, out: torch.Tensor, ref: torch.Tensor, limit: float) -> dict[str, Any]:
        return {"name": name, "value": relative(out, ref), "limit": limit}
