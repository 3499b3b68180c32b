"""Paged attention of up to 64 tokens: decode, speculative verify. One block a split of a tile's keys.

Roles, rings, timeline: those of attention.py, over the pages of one split. A tile of one split stores its
            rows; otherwise each split leaves its part in the workspace, and the last to arrive adds them
            up (attention_parts.py)
Grid:       (KV heads, tiles, most splits); a block past the splits of its tile ends at once

A tile of n pages has ceil(n / chunk) splits of chunk = max(least, ceil(n / most)) pages: a function of
its own length and of the token range, so that neighbours in the batch change no bits. A row that sees no
key of a split has the total 0 and a maximum near -1e30 there, which weighs zero.

Two blocks share a multiprocessor, and the hardware deals them, so that one block's loads hide the
other's waits, and no block waits for a longer one. Floor: the bytes of the pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir import ir

from ..builder import KernelBuilder, Value
from ..builder import types as t
from ..gpu.attention_merge import Workspace
from ..gpu.attention_tile import ROWS
from ..gpu.softmax import Softmax
from ..kernel import Argument, Expression
from .attention import Attention, Config
from .attention_parts import Parts
from .attention_schedule import ceil_divide


@dataclass(frozen=True)
class Splits:
    """At most `most` splits of a tile, of `least` pages or more."""

    most: int
    least: int


def choose(head_dim: int) -> Config:
    """Two blocks where their rings fit; head dims 192 and 256 fill a multiprocessor with one."""
    if head_dim <= 128:
        return Config(groups=1, stages=4 if head_dim == 64 else 2, blocks=2)
    return Config(groups=1)


class SplitAttention(Attention):
    """Attention whose tiles are split: a kernel sets `split`, `count` (the splits of the tile) and `flag`
    (!tile.smem<1xi32>, scratch)."""

    split: Value
    count: Value
    flag: Value

    def __init__(self, kernel_op: Any, config: Config, suffix: str, splits: Splits, workspace: Workspace):
        super().__init__(kernel_op, config, suffix)
        self.splits, self.workspace = splits, workspace

    def extra_types(self) -> dict[str, ir.Type]:
        f32s = t.ptr(t.f32())
        own = {"sums": f32s, "ends": f32s, "arrivals": t.ptr(t.i32()), "least": t.i32(), "most": t.i32()}
        return super().extra_types() | own

    def _arguments(self) -> list[Argument]:
        splits: list[Argument] = [{"i32": self.splits.least}, {"i32": self.splits.most}]
        return [*super()._arguments(), *self.workspace.arguments()[:2], {"zeroed": True}, *splits]

    def _finish(self, softmax: Softmax, out: Value, maximum: Value, total: Value) -> None:
        k = self.k
        with k.if_(self.count.equals(1)):
            self._store(out, softmax.finish(maximum, total, self.first_own))
        with k.if_(self.count > 1):
            sums, ends, arrivals, most = (self.extra[name] for name in ("sums", "ends", "arrivals", "most"))
            parts = Parts(k, sums, ends, arrivals, most, self.split, self.count, self._at, self.dim, self.dtype)
            parts.store(out, maximum, k.row_reduce("add", total, self.rows), softmax.factor)
            # Unique: the rows of a tile are its own among those of all sequences.
            tile = (self.first_row * self.group + self.base) * self.kv.heads + self.head
            with k.if_(parts.arrive(tile, self.flag)):
                rows = (self.q_len * self.group - self.base).min(ROWS)
                parts.merge(rows, self.out, softmax.sink if self.sinks is not None else None)

    def _at(self, row: Value) -> tuple[Value, Value]:
        """(index of the row among [T, heads], whether it is one of the sequence)."""
        token, head = self.row(row)
        return (self.first_row + token) * self.heads + head, token < self.q_len


class _Decode(SplitAttention):
    def __init__(self, kernel_op: Any, config: Config, splits: Splits, workspace: Workspace):
        super().__init__(kernel_op, config, "_decode", splits, workspace)

    def _grid(self) -> tuple[Expression, ...]:
        heads, tiles, _ = super()._grid()
        return heads, tiles, self.splits.most

    def _work(self) -> None:
        self.flag = self.k.shared(t.smem((1,), t.i32()))
        super()._work()

    def pages(self, k: KernelBuilder) -> tuple[Value, Value]:
        """Pages [first, last) of this split."""
        first, last = super().pages(k)
        self.split = k.program_id("z")
        pages = last - first
        chunk = ceil_divide(pages, self.extra["most"]).max(self.extra["least"])
        self.count = k.uniform(ceil_divide(pages, chunk))
        begin = first + self.split * chunk
        return begin, (begin + chunk).min(last)

    @property
    def works(self) -> Value:
        return self.active & (self.split < self.count)


def build(
    kernel_op: Any, config: Config, splits: Splits, workspace: Workspace
) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: the KV heads by an upper bound of the tiles by the most splits.

    The code depends on neither `splits` nor `workspace`, only the grid and the arguments do.
    """
    return _Decode(kernel_op, config, splits, workspace).build()
