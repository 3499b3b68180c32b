"""Linear for few tokens: weights as the M operand, tokens as N, one pass over the weights.

Roles:    load (1 thread) | math (1 to 4 warpgroups)
Ring wx:  load -> math; a stage is `rows` rows of w and all tokens of x, block_k of K deep
Timeline: load: w for the whole ring, wait for the predecessors, x for the same stages, then both
          math: for each k: wx.consume -> wgmma (one in flight); then the epilogue, transposed

Each block owns consecutive rows of w, so few that every multiprocessor gets one block; a warpgroup
takes `rows_per_group` (at most 64) of them and its wgmma computes 64, of which the rest is thrown
away. Time is the bytes of w over the bandwidth: everything else hides behind them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..builder import KernelBuilder, Value
from ..builder import types as t
from ..kernel import Argument, Expression
from .body import Body, element
from .linear_body import Epilogue, LinearBody
from .linear_large import SHARED_BYTES, SMS, tensor_map

SPAN = 64
"""Elements of one 128-byte swizzle span."""
WIDTHS = (8, 16, 32, 64, 128)
"""Token counts that kernels are made for; a batch takes the next larger one."""


@dataclass(frozen=True)
class Config:
    """Rows of w per warpgroup, warpgroups, width in tokens, and the ring."""

    rows_per_group: int
    groups: int
    tokens: int
    block_k: int
    stages: int

    @property
    def rows(self) -> int:
        return self.rows_per_group * self.groups

    def why_invalid(self, gated: bool) -> str | None:
        """None, or the rule that the configuration breaks."""
        step = 16 if gated else 8
        if self.rows_per_group % step or not step <= self.rows_per_group <= 64:
            return f"rows_per_group must be a multiple of {step} up to 64, got {self.rows_per_group}"
        if not 1 <= self.groups <= 4:
            return f"expected 1 to 4 warpgroups, got {self.groups}"
        if self.tokens % 8 or not 8 <= self.tokens <= 256:
            return f"tokens must be a multiple of 8 up to 256, got {self.tokens}"
        if self.block_k % SPAN:
            return f"block_k must be a multiple of {SPAN}, got {self.block_k}"
        return None


def choose(n: int, k: int, tokens: int, gated: bool) -> Config:
    """As few rows a block as still leave no multiprocessor without one."""
    step = 16 if gated else 8
    # Four warpgroups leave 96 registers a thread, too few for an accumulator of 128 tokens.
    rows = min(256 if tokens <= 64 else 128, _up(-(-n // SMS), step))
    groups = -(-rows // 64)
    per_group = _up(-(-rows // groups), step)
    block_k = 256 if rows <= 32 else 128 if rows <= 128 else SPAN
    block_k = min(block_k, _up(k, SPAN))
    stage_bytes = (_up(per_group * groups, 8) + tokens) * block_k * 2
    # The rows that a wgmma reads past its own, in the last stage.
    padding = (64 - per_group) * SPAN * 2
    stages = min(16, (SHARED_BYTES - 1024 - padding) // _up(stage_bytes, 1024))
    return Config(per_group, groups, tokens, block_k, min(stages, max(2, -(-k // block_k))))


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def build(kernel_op: Any, config: Config) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: one block for each `config.rows` rows of w."""
    linear = LinearBody(Body(kernel_op))
    linear.check()
    if reason := config.why_invalid(linear.glu is not None):
        raise ValueError(reason)
    return _Kernel(linear, config).build()


class _Kernel:
    def __init__(self, linear: LinearBody, config: Config):
        self.linear, self.config = linear, config
        dtype, weight = element(linear.input), element(linear.weight)
        self.maps = (
            t.tensor_map((config.rows, SPAN), weight),
            t.tensor_map((config.tokens, SPAN), dtype),
        )
        self.slots = [
            t.smem((config.rows, config.block_k), weight, 128),
            t.smem((config.tokens, config.block_k), dtype, 128),
        ]
        self.mine = t.smem((64, config.block_k), weight, 128, slab_rows=config.rows)
        self.acc = t.acc(64, config.tokens, t.f32())
        self.steps = -(-linear.k // config.block_k)
        threads = 128 * config.groups + 32
        self.k = KernelBuilder(f"{linear.body.name}_t{config.tokens}", threads=threads, pdl=True, min_blocks=1)

    def build(self) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
        k, config, linear = self.k, self.config, self.linear
        self.w, self.x, self.tokens, *memory = k.arguments(
            w=self.maps[0], x=self.maps[1], tokens=t.i32(), **linear.parameters()
        )
        with k.body():
            self.ring = k.ring(config.stages, *self.slots)
            self.first_row = k.program_id() * config.rows
            with k.role("math", warps=4 * config.groups):
                self._math(Epilogue(k, linear, memory))
            with k.role("load", warps=1, elected=True):
                self._load()
        arguments: list[Argument] = [
            tensor_map(linear.body.operand(linear.weight), linear.k, linear.n, config.rows),
            tensor_map(linear.body.operand(linear.input), linear.k, "max_rows", config.tokens),
            {"i32": "rows"},
            *linear.arguments(),
        ]
        return k, (-(-linear.n // config.rows), 1, 1), arguments

    def _load_w(self, step: Value, tile: Value) -> None:
        self.k.tma_load(self.w, [self.first_row, step * self.config.block_k], tile, cache="evict_first")

    def _load_x(self, step: Value, tile: Value) -> None:
        self.k.tma_load(self.x, [0, step * self.config.block_k], tile)

    def _load(self) -> None:
        k = self.k
        # First of all: with one block a multiprocessor, the next kernel's block moves in only
        # when this one leaves, and its weights then follow without a gap.
        k.pdl_launch()
        head = min(self.config.stages, self.steps)

        def begin(step: Value) -> None:
            with k.produce(self.ring, self.slots, part="begin") as (w, _):
                self._load_w(step, w)

        def resume(step: Value) -> None:
            with k.produce(self.ring, self.slots, part="resume") as (_, x):
                self._load_x(step, x)

        def both(step: Value) -> None:
            with k.produce(self.ring, self.slots) as (w, x):
                self._load_w(step, w)
                self._load_x(step, x)

        k.for_(0, head, 1, begin)
        k.pdl_wait()
        k.for_(0, head, 1, resume)
        k.for_(head, self.steps, 1, both)

    def _math(self, epilogue: Epilogue) -> None:
        k, config = self.k, self.config
        k.pdl_wait()

        def multiply(acc: Value, w: Value, x: Value) -> Value:
            rows = k.warpgroup_slice(w, config.rows_per_group, self.mine)
            return k.wgmma_wait([k.wgmma(rows, x, acc, self.acc)], [self.acc], pending=1)

        acc = k.for_(
            0,
            self.steps,
            1,
            lambda _, acc: k.consume(self.ring, self.slots, lambda w, x: multiply(acc, w, x), [self.acc], keep=1),
            [k.zero_acc(self.acc)],
        )
        product = k.wgmma_wait([acc], [t.frag((64, config.tokens), t.f32())])
        k.release(self.ring)
        own = k.warpgroup_index() * config.rows_per_group
        self._finish(epilogue, product, self.first_row + own)

    def _finish(self, epilogue: Epilogue, product: Value, first: Value) -> None:
        """Row r, column c of the fragment is output `first + r` of token c."""
        k, config, linear = self.k, self.config, self.linear
        if linear.glu is None:

            def store(v: Value, row: Value, token: Value) -> None:
                column = first + row
                inside = (row < config.rows_per_group) & (column < linear.n) & (token < self.tokens)
                epilogue.finish([v], token, column, inside)

            k.epilogue([product], [t.f32()], store, at=(0, 0))
            return
        half = t.frag((32, config.tokens), t.f32(), "half_rows")
        gate, up = k.deinterleave(product, half, rows=True)

        def store_gated(g: Value, u: Value, row: Value, token: Value) -> None:
            column = (first >> 1) + row
            inside = (row < config.rows_per_group // 2) & (column < linear.columns) & (token < self.tokens)
            epilogue.finish([g, u], token, column, inside)

        k.epilogue([gate, up], [t.f32(), t.f32()], store_gated, at=(0, 0))
