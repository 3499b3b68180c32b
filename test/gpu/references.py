"""Random problems for each kind of kernel, and what they should give.

What a Problem is, and how it compares, says `problem`; the linears are in `linear_references`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from linear_references import Linear, quantized
from problem import BF16, BLOCK, NAN, Problem, half_of, randn


class Embedding(Problem):
    def __init__(self, case: dict[str, Any], tokens: int, max_tokens: int):
        super().__init__(tokens)
        self.ids = torch.randint(case["vocab"], (tokens,), device="cuda", dtype=torch.int32)
        self.table = randn(case["vocab"], case["hidden"], dtype=torch.bfloat16)
        self.operands = [self.ids, self.table]
        self.results = [torch.empty(tokens, case["hidden"], device="cuda")]

    def errors(self) -> list[dict[str, Any]]:
        return [self.error("out", self.results[0], self.table[self.ids.long()], 0.0)]


class Norm(Problem):
    def __init__(self, case: dict[str, Any], tokens: int, max_tokens: int):
        super().__init__(tokens)
        hidden, self.layer = case["hidden"], case["kind"] == "layer_norm"
        self.x = randn(tokens, hidden) * 3 + 0.5
        self.weights = [randn(hidden) for _ in range(2 if self.layer else 1)]
        self.operands = [self.x, *self.weights]
        self.results = [torch.empty(tokens, hidden, device="cuda", dtype=torch.bfloat16)]

    def errors(self) -> list[dict[str, Any]]:
        x = self.x.double()
        if self.layer:
            x = x - x.mean(-1, keepdim=True)
        ref = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.weights[0].double()
        if self.layer:
            ref = ref + self.weights[1].double()
        return [self.error("out", self.results[0], ref, BF16)]


class Quantize(Problem):
    """Codes and scales of rows: of a norm of them, or of the rows themselves; one of the latter is all zero."""

    def __init__(self, case: dict[str, Any], tokens: int, max_tokens: int):
        super().__init__(tokens)
        columns = case["hidden"]
        self.gamma = None
        if case["kind"] == "quantized_norm":
            self.x = randn(tokens, columns) * 3 + 0.5
            self.gamma = randn(columns)
            self.operands = [self.x, self.gamma]
        else:
            self.x = randn(tokens, columns, dtype=torch.bfloat16)
            self.x[tokens // 2] = 0 if tokens > 1 else self.x[0]
            self.operands = [self.x]
        self.results = [
            torch.empty(tokens, columns, device="cuda", dtype=torch.float8_e4m3fn),
            torch.empty(tokens, 1, device="cuda"),
        ]

    def errors(self) -> list[dict[str, Any]]:
        y = self.x.double()
        if self.gamma is not None:
            y = y * torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-5) * self.gamma.double()
        codes, scales = quantized(y)
        # Float32 in the kernel and in the reference may fall to two sides of a tie, once in a million.
        differ = (codes.view(torch.uint8) != self.results[0].view(torch.uint8)).double().mean().item()
        found = self.results[0].float() * self.results[1]
        return [
            self.error("scales", self.results[1], scales, 1e-6),
            {"name": "codes that differ", "value": differ, "limit": 1e-3},
            # Three bits of mantissa: 2^-4 / sqrt(3) of a value at most.
            self.error("values", found, y, 2.0**-4 / 3**0.5),
        ]


class RopeTable(Problem):
    def __init__(self, case: dict[str, Any], tokens: int, max_tokens: int):
        super().__init__(tokens)
        half = case["half"]
        self.positions = torch.randint(131072, (tokens,), device="cuda", dtype=torch.int32)
        self.inv_freq = (5e5 ** (-torch.arange(half, device="cuda") / half)).float()
        self.operands = [self.positions, self.inv_freq]
        self.results = [torch.empty(tokens, half, device="cuda") for _ in range(2)]

    def errors(self) -> list[dict[str, Any]]:
        # The angle is a float32 product by definition (llm.rope_table); its cosine is exact.
        angle = (self.positions.float()[:, None] * self.inv_freq).double()
        limit = 2e-6
        return [
            self.error("cos", self.results[0], angle.cos(), limit),
            self.error("sin", self.results[1], angle.sin(), limit),
        ]


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x [T, heads, D], cos and sin [T, D/2], pairs (i, i + D/2)."""
    a, b = x.double().chunk(2, dim=-1)
    c, s = cos.double()[:, None], sin.double()[:, None]
    return torch.cat([a * c - b * s, b * c + a * s], dim=-1)


class RopeAppend(Problem):
    def __init__(self, case: dict[str, Any], tokens: int, max_tokens: int):
        super().__init__(tokens)
        self.case = case
        heads, kv_heads, dim = case["heads"], case["kv_heads"], case["dim"]
        self.qkv = randn(tokens, (heads + 2 * kv_heads) * dim, dtype=torch.bfloat16)
        angle = torch.rand(tokens, dim // 2, device="cuda") * 6.3
        self.cos, self.sin = angle.cos(), angle.sin()
        blocks = tokens // BLOCK + 3
        self.slots = (torch.randperm((blocks - 1) * BLOCK, device="cuda")[:tokens] + BLOCK).to(torch.int32)
        self.cache = {p: torch.empty(blocks, kv_heads, BLOCK, dim, device="cuda", dtype=torch.bfloat16) for p in "kv"}
        self.operands = [self.qkv, self.cos, self.sin, self.cache, {"slots": self.slots}]
        self.results = [torch.empty(tokens, heads, dim, device="cuda", dtype=torch.bfloat16)]

    def poison(self) -> None:
        super().poison()
        for pool in self.cache.values():
            pool.fill_(NAN)

    def outputs(self) -> list[torch.Tensor]:
        return [*self.results, *self.cache.values()]

    def errors(self) -> list[dict[str, Any]]:
        heads, kv_heads, dim = self.case["heads"], self.case["kv_heads"], self.case["dim"]
        q, k, v = self.qkv.view(self.tokens, -1, dim).split([heads, kv_heads, kv_heads], dim=1)
        block, offset = self.slots.long() // BLOCK, self.slots.long() % BLOCK
        found = {p: pool[block, :, offset] for p, pool in self.cache.items()}
        written = torch.zeros_like(self.cache["k"][:, 0, :, 0], dtype=torch.bool)
        written[block, offset] = True
        stray = sum(int((~pool[:, 0, :, 0][~written].isnan()).sum()) for pool in self.cache.values())
        return [
            self.error("q", self.results[0], rotate(q, self.cos, self.sin), BF16),
            self.error("k", found["k"], rotate(k, self.cos, self.sin), BF16),
            self.error("v", found["v"], v, 0.0),
            {"name": "stray writes", "value": float(stray), "limit": 0.0},
        ]


PADDING = (1, -1)
PADDED = (7, 64)


def ragged(tokens: int) -> list[tuple[int, int]]:
    """(query length, cached length before) of the sequences of a step of `tokens` tokens.

    The last sequence of a small step pads it, as in a captured graph: one token, and no length.
    """
    if tokens == 1:
        return [(1, int(torch.randint(1, 9000, ())))]
    if tokens in PADDED:
        return [*ragged(tokens - 1), PADDING]
    decode = min(tokens // 2, 17)
    # Every fourth is long, so that some are split over blocks and some are not.
    before = [length * (1 if i % 4 else 12) for i, length in enumerate(torch.randint(0, 700, (decode,)).tolist())]
    left = tokens - decode
    first = left // 3
    chunks = [(first, 1500), (left - first, 0)] if first else [(left, 64)]
    return [(1, length) for length in before] + chunks


class Attention(Problem):
    def __init__(
        self,
        case: dict[str, Any],
        tokens: int,
        max_tokens: int,
        sequences: list[tuple[int, int]] | None = None,
    ):
        super().__init__(tokens)
        self.case, half = case, half_of(case)
        heads, kv_heads, dim = case["heads"], case["kv_heads"], case["dim"]
        self.sequences = sequences or ragged(tokens)
        lengths = [q + before for q, before in self.sequences]
        pages = [-(-length // BLOCK) for length in lengths]
        width, blocks = max(pages) + 2, sum(pages) + 5
        order = (torch.randperm(blocks - 1) + 1).tolist()
        table = torch.zeros(len(lengths), width, dtype=torch.int32)
        self.cache = {p: torch.full((blocks, kv_heads, BLOCK, dim), NAN, device="cuda", dtype=half) for p in "kv"}
        self.dense = []
        for s, (length, count) in enumerate(zip(lengths, pages, strict=True)):
            mine, order = order[:count], order[count:]
            table[s, :count] = torch.tensor(mine)
            pair = {p: randn(length, kv_heads, dim, dtype=half) for p in "kv"}
            self.dense.append(pair)
            position = torch.arange(length)
            block = torch.tensor(mine, dtype=torch.long)[position // BLOCK].cuda()
            for p in "kv":
                self.cache[p][block, :, (position % BLOCK).cuda()] = pair[p]
        starts = torch.tensor([0] + [q for q, _ in self.sequences]).cumsum(0)
        batch = {
            "query_start": starts.to(torch.int32).cuda(),
            "kv_len": torch.tensor(lengths, dtype=torch.int32).cuda(),
            "block_table": table.cuda(),
        }
        self.sizes |= {"S": len(lengths), "B": width, "NB": blocks}
        self.q = randn(tokens, heads, dim, dtype=half)
        self.operands = [self.q, self.cache, batch]
        self.sinks = randn(heads) * 3 if case["sinks"] else None
        if self.sinks is not None:
            self.operands.append(self.sinks)
        self.results = [torch.empty(tokens, heads, dim, device="cuda", dtype=half)]

    def errors(self) -> list[dict[str, Any]]:
        heads, dim = self.case["heads"], self.case["dim"]
        parts, row = [], 0
        for (count, before), pair in zip(self.sequences, self.dense, strict=True):
            if (count, before) == PADDING:
                continue
            group = heads // self.case["kv_heads"]
            k = pair["k"].float().repeat_interleave(group, dim=1)
            v = pair["v"].float().repeat_interleave(group, dim=1)
            scores = torch.einsum("thd,jhd->htj", self.q[row : row + count].float(), k) * dim**-0.5
            if self.case["softcap"]:
                scores = torch.tanh(scores / self.case["softcap"]) * self.case["softcap"]
            i = torch.arange(before, before + count, device="cuda")[:, None]
            j = torch.arange(before + count, device="cuda")[None]
            visible = j <= i
            if self.case["window"]:
                visible &= j > i - self.case["window"]
            scores = scores.masked_fill(~visible, -float("inf"))
            if self.sinks is not None:
                # One more score a head, whose value is zero.
                sink = self.sinks[:, None, None].expand(-1, count, 1)
                scores = torch.cat([scores, sink], -1)
            weights = scores.softmax(-1)[..., : before + count]
            parts.append(torch.einsum("htj,jhd->thd", weights, v))
            row += count
        # The probabilities are rounded to bf16 before the second product, as in every such kernel.
        # What stands in the rows of padding, which come last, is nobody's business.
        return [self.error("out", self.results[0][:row], torch.cat(parts), 6e-3)]


def philox4x32(counter: list[torch.Tensor], key: list[torch.Tensor]) -> list[torch.Tensor]:
    """The four words of Philox4x32-10 as int64 tensors; see the runtime's philox.h."""
    mask = 0xFFFFFFFF
    for _ in range(10):
        # 32 x 32 bit products do not fit int64's sign: split one factor.
        halves = [(c * (m & 0xFFFF), c * (m >> 16)) for m, c in ((0xD2511F53, counter[0]), (0xCD9E8D57, counter[2]))]
        low = [(a + ((b & 0xFFFF) << 16)) & mask for a, b in halves]
        high = [((a >> 16) + b) >> 16 for a, b in halves]
        counter = [high[1] ^ counter[1] ^ key[0], low[1], high[0] ^ counter[3] ^ key[1], low[0]]
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return counter


class Sample(Problem):
    """Rows of every kind of sampling: greedy, plain, and each cut alone and together."""

    def __init__(self, case: dict[str, Any], tokens: int, max_tokens: int):
        super().__init__(tokens)
        self.vocab = case["vocab"]
        row = torch.arange(tokens, device="cuda")
        self.logits = randn(tokens, self.vocab) * 4
        self.temperature = torch.where(row % 5 == 0, 0.0, 0.5 + torch.rand(tokens, device="cuda"))
        self.top_k = torch.where(row % 2 == 0, row % 50, 0).to(torch.int32)
        self.top_p = torch.where(row % 3 == 0, 0.3 + 0.6 * torch.rand(tokens, device="cuda"), 1.0)
        self.min_p = torch.where(row % 7 == 0, 0.05, 0.0)
        self.seed = torch.randint(-(2**62), 2**62, (tokens,), device="cuda")
        self.index = torch.randint(2**20, (tokens,), device="cuda", dtype=torch.int32)
        self.operands = [
            self.logits, self.temperature, self.top_k, self.top_p, self.min_p, self.seed, self.index,
        ]  # fmt: skip
        self.results = [torch.empty(tokens, device="cuda", dtype=torch.int32)]

    def poison(self) -> None:
        self.results[0].fill_(-7)

    def reference(self, r: int) -> tuple[int, float]:
        """(token, gap between the best two candidates) of a row, in float64."""
        logits = self.logits[r].double()
        if self.temperature[r] == 0:
            return int(logits.argmax()), float("inf")
        x = (self.logits[r] * (1.0 / self.temperature[r])).double()
        kept = torch.ones_like(x, dtype=torch.bool)
        k = int(self.top_k[r])
        if 0 < k < self.vocab:
            kept &= x >= x.topk(k).values[-1]
        if self.top_p[r] < 1:
            ordered, _ = x.masked_fill(~kept, -float("inf")).sort(descending=True)
            mass = ordered.softmax(0).cumsum(0)
            last = int((mass < self.top_p[r].double()).sum())
            kept &= x >= ordered[min(last, self.vocab - 1)]
        if self.min_p[r] > 0:
            kept &= x - x.max() >= self.min_p[r].double().log()
        i = torch.arange(self.vocab, device="cuda")
        mask = torch.tensor(0xFFFFFFFF, device="cuda")
        zero = torch.zeros_like(i)
        key = [(self.seed[r] & mask) + zero, ((self.seed[r] >> 32) & mask) + zero]
        words = torch.stack(philox4x32([i // 4, self.index[r].long() + zero, zero, zero], key))
        w = words.gather(0, (i % 4)[None])[0].double()
        noisy = (x - torch.log(-torch.log1p(-(w + 0.5) * 2.0**-32))).masked_fill(~kept, -float("inf"))
        best = noisy.topk(2)
        return int(best.indices[0]), float(best.values[0] - best.values[1])

    def errors(self) -> list[dict[str, Any]]:
        wrong = close = 0
        for r in range(0, self.tokens, max(1, self.tokens // 200)):
            token, gap = self.reference(r)
            differs = int(self.results[0][r]) != token
            # Where two candidates are closer than float32's rounding, either may win; at a cut of
            # top_p likewise, which the allowance of one row in a hundred covers.
            close += differs and gap < 1e-4
            wrong += differs and gap >= 1e-4
        return [{"name": "wrong tokens", "value": float(wrong), "limit": max(0.0, self.tokens / 400 - 0.5)}]


PROBLEMS: dict[str, Callable[[dict[str, Any], int, int], Problem]] = {
    "embedding": Embedding,
    "rms_norm": Norm,
    "layer_norm": Norm,
    "quantized_norm": Quantize,
    "quantize": Quantize,
    "rope_table": RopeTable,
    "rope_append": RopeAppend,
    "linear": Linear,
    "attention": Attention,
    "sample": Sample,
}
