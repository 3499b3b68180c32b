"""Random problems for the linears, of 16-bit operands and of 8-bit floats with scales.

Float32 results of bf16 products differ from the reference by how the tensor cores add: they truncate where it
rounds, an error that grows with the length of the sum (measured on an H200: 1.1e-9 K). Of 8-bit operands they keep
some 14 bits of each sum of 128 products; the sums of those are float32.
"""

from __future__ import annotations

from typing import Any

import torch
from problem import BF16, NAN, Problem, half_of, poison, randn

FLOAT8 = 1e-3
LARGEST = 448.0


def quantized(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(codes, scales [rows, 1]) of the rows of a matrix."""
    scales = (x.float().abs().amax(-1, keepdim=True) / LARGEST).clamp_min(2.0**-126)
    return (x.float() / scales).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn), scales


class Linear(Problem):
    def __init__(self, case: dict[str, Any], tokens: int, max_tokens: int):
        super().__init__(tokens)
        self.case, half = case, half_of(case)
        n, k, self.epilogue = case["n"], case["k"], case["epilogue"]
        # The result lies on the residual, as an engine's residual stream does.
        self.in_place = self.epilogue == "residual_in_place"
        if self.in_place:
            self.epilogue = "residual"
        # The activation buffer is as long as the engine's: rows past the step's are garbage.
        self.sizes["max_rows"] = max_tokens
        self.scales: list[torch.Tensor] = []
        if case.get("float8"):
            self._make_float8(n, k, max_tokens)
        else:
            self.x = torch.full((max_tokens, k), NAN, device="cuda", dtype=half)
            self.x[:tokens] = randn(tokens, k, dtype=half)
            self.w = randn(n, k, dtype=half)
        self.operands = [self.x, self.w, *self.scales]
        wide = self.epilogue in ("f32", "residual")
        columns = n // 2 if self.epilogue == "glu" else n
        self.extra = None
        if self.epilogue == "bias":
            self.extra = randn(n) * 10
        elif self.epilogue == "residual":
            # As long as the engine's too.
            self.extra = torch.full((max_tokens, n), NAN, device="cuda")
            self.extra[:tokens] = randn(tokens, n) * 10
        if self.extra is not None:
            self.operands.append(self.extra)
        dtype = torch.float32 if wide else half
        # As long as the engine's, and a guard row behind it where nothing may be written. Rows past
        # the step's may be, by kernels that store whole boxes.
        self.buffer = torch.empty(max_tokens + 1, columns, device="cuda", dtype=dtype)
        self.results = [self.buffer]
        self._reference: torch.Tensor | None = None
        if self.in_place:
            self.operands[-1] = self.buffer

    def _make_float8(self, n: int, k: int, max_tokens: int) -> None:
        """Rows of different sizes, so that a scale of another row would show."""
        self.x = torch.empty(max_tokens, k, device="cuda", dtype=torch.float8_e4m3fn)
        poison(self.x)
        of_x = torch.full((max_tokens, 1), NAN, device="cuda")
        sizes = torch.rand(self.tokens, 1, device="cuda") + 0.5
        self.x[: self.tokens], of_x[: self.tokens] = quantized(randn(self.tokens, k) * sizes)
        self.w, of_w = quantized(randn(n, k) * (torch.rand(n, 1, device="cuda") + 0.5))
        self.scales = [of_w, of_x]

    def poison(self) -> None:
        super().poison()
        if self.in_place:
            self.buffer[: self.tokens] = self.extra[: self.tokens]

    def outputs(self) -> list[torch.Tensor]:
        return [self.buffer[: self.tokens]]

    def reference(self) -> torch.Tensor:
        """In float32, computed once."""
        if self._reference is None:
            self._reference = self._compute()
        return self._reference

    def _compute(self) -> torch.Tensor:
        ref = self.x[: self.tokens].float() @ self.w.float().t()
        if self.scales:
            of_w, of_x = self.scales
            ref = ref * of_x[: self.tokens] * of_w.t()
        if self.extra is not None:
            ref = ref + (self.extra[: self.tokens] if self.epilogue == "residual" else self.extra)
        if self.epilogue == "glu":
            pairs = ref.view(self.tokens, -1, 2, 8)
            gate, up = pairs[:, :, 0].flatten(1), pairs[:, :, 1].flatten(1)
            ref = torch.nn.functional.silu(gate) * up
        return ref

    def errors(self) -> list[dict[str, Any]]:
        of_sums = FLOAT8 if self.scales else 2e-9 * self.case["k"] + 1e-6
        limit = of_sums if self.buffer.dtype == torch.float32 else max(BF16, 2 * of_sums)
        stray = int((~self.buffer[-1].isnan()).sum())
        return [
            self.error("out", self.buffer[: self.tokens], self.reference(), limit),
            {"name": "stray writes", "value": float(stray), "limit": 0.0},
        ]
