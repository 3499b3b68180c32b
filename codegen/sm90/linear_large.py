"""Linear for many tokens: persistent, warp-specialised, wgmma from TMA-fed rings.

Roles:    load (1 thread) | math (two warpgroups of 64 rows each)
Ring ab:  load -> math; a stage is one tile of x and one of w, 64 of K deep
Timeline: load: for each tile, for each k: ab.produce
          math: for each tile, for each k: ab.consume -> wgmma (one in flight); then the epilogue

Blocks walk the tiles of the result in grouped raster order. Rows past T and columns past N are
computed on zeros (TMA fills them) and never stored. Floor: 2 T N K operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..builder import KernelBuilder, Value
from ..builder import types as t
from ..kernel import Argument, Expression, ceildiv, mul
from .body import Body, element
from .linear_body import Epilogue, LinearBody

BLOCK_K = 64
"""One 128-byte swizzle span of 16-bit elements."""
ROWS = 64
"""Rows of one warpgroup's wgmma."""
SHARED_BYTES = 232448
SMS = 132


@dataclass(frozen=True)
class Config:
    """Tile of the result and depth of the ring."""

    block_m: int = 128
    block_n: int = 256
    stages: int = 4
    group: int = 16

    def why_invalid(self) -> str | None:
        """None, or the rule that the configuration breaks."""
        if self.block_m != 2 * ROWS:
            return f"block_m must be {2 * ROWS} (two warpgroups), got {self.block_m}"
        if self.block_n % 16 or not 16 <= self.block_n <= 256:
            return f"block_n must be a multiple of 16 in 16..256, got {self.block_n}"
        used = self.stages * (self.block_m + self.block_n) * BLOCK_K * 2
        if self.stages < 2 or used > SHARED_BYTES - 1024:
            return f"{self.stages} stages take {used} of {SHARED_BYTES} bytes"
        return None


def choose(n: int, tokens: int) -> Config:
    """The largest tile that still gives every multiprocessor work."""
    rows = -(-tokens // 128)
    for block_n, stages in ((256, 4), (192, 5), (128, 6)):
        if rows * -(-n // block_n) >= SMS:
            return Config(block_n=block_n, stages=stages)
    return Config(block_n=128, stages=6)


def build(
    kernel_op: Any, max_tokens: int, config: Config
) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: one block a multiprocessor, fewer when there are fewer tiles."""
    if reason := config.why_invalid():
        raise ValueError(reason)
    linear = LinearBody(Body(kernel_op))
    linear.check()
    return _Kernel(linear, max_tokens, config).build()


class _Kernel:
    def __init__(self, linear: LinearBody, max_tokens: int, config: Config):
        self.linear, self.config, self.max_tokens = linear, config, max_tokens
        dtype = element(linear.input)
        a, b = (config.block_m, BLOCK_K), (config.block_n, BLOCK_K)
        self.maps = t.tensor_map(a, dtype), t.tensor_map(b, element(linear.weight))
        self.slots = [t.smem(a, dtype, 128), t.smem(b, dtype, 128)]
        self.rows_type = t.smem((ROWS, BLOCK_K), dtype, 128, slab_rows=config.block_m)
        self.acc = t.acc(ROWS, config.block_n, t.f32())
        self.steps = -(-linear.k // BLOCK_K)
        self.k = KernelBuilder(linear.body.name, threads=384, pdl=True, min_blocks=1)

    def build(self) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
        k, config, linear = self.k, self.config, self.linear
        self.a, self.b, self.tokens, *memory = k.arguments(
            a=self.maps[0], b=self.maps[1], tokens=t.i32(), **linear.parameters()
        )
        with k.body():
            self.ring = k.ring(config.stages, *self.slots)
            self.tile_rows = (self.tokens + (config.block_m - 1)) // config.block_m
            self.tile_columns = k.i32(-(-linear.n // config.block_n))
            self.tiles = self.tile_rows * self.tile_columns
            self.first, self.stride = k.program_id(), k.num_programs()
            with k.role("load", warps=1, regs=40, elected=True):
                self._load()
            with k.role("math", warps=8, regs=232):
                self._math(Epilogue(k, linear, memory))
        rows: Expression = "rows"
        grid = ["min", SMS, mul(ceildiv(rows, config.block_m), -(-linear.n // config.block_n))]
        arguments: list[Argument] = [
            tensor_map(linear.body.operand(linear.input), linear.k, self.max_tokens, config.block_m),
            tensor_map(linear.body.operand(linear.weight), linear.k, linear.n, config.block_n),
            {"i32": rows},
            *linear.arguments(),
        ]
        return k, (grid, 1, 1), arguments

    def _tile(self, work: Value) -> tuple[Value, Value]:
        """First row and first column of a tile."""
        m, n = self.k.raster(work, self.tile_rows, self.tile_columns, self.config.group)
        return m * self.config.block_m, n * self.config.block_n

    def _load(self) -> None:
        k = self.k
        k.pdl_wait()

        def tile(work: Value) -> None:
            m0, n0 = self._tile(work)

            def step(i: Value) -> None:
                with k.produce(self.ring, self.slots) as (a, b):
                    k.tma_load(self.a, [m0, i * BLOCK_K], a)
                    k.tma_load(self.b, [n0, i * BLOCK_K], b)

            k.for_(0, self.steps, 1, step)

        k.for_(self.first, self.tiles, self.stride, tile)

    def _math(self, epilogue: Epilogue) -> None:
        k, config = self.k, self.config
        k.pdl_wait()
        group = k.warpgroup_index()

        def multiply(acc: Value, a: Value, b: Value) -> Value:
            mine = k.warpgroup_slice(a, ROWS, self.rows_type)
            started = k.wgmma(mine, b, acc, self.acc)
            return k.wgmma_wait([started], [self.acc], pending=1)

        def tile(work: Value) -> None:
            m0, n0 = self._tile(work)
            acc = k.for_(
                0,
                self.steps,
                1,
                lambda _, acc: k.consume(self.ring, self.slots, lambda a, b: multiply(acc, a, b), [self.acc], keep=1),
                [k.zero_acc(self.acc)],
            )
            product = k.wgmma_wait([acc], [t.frag((ROWS, config.block_n), t.f32())])
            k.release(self.ring)
            self._finish(epilogue, product, m0 + group * ROWS, n0)

        k.for_(self.first, self.tiles, self.stride, tile)
        k.pdl_launch()

    def _finish(self, epilogue: Epilogue, product: Value, row: Value, column: Value) -> None:
        k, config, linear = self.k, self.config, self.linear
        pair = t.vector(2, t.f32())
        if linear.glu is None:
            k.epilogue(
                [product],
                [pair],
                lambda v, r, c: epilogue.finish(v, r, c, (r < self.tokens) & (c < linear.n)),
                at=(row, column),
            )
            return
        half = t.frag((ROWS, config.block_n // 2), t.f32())
        gate, up = k.deinterleave(product, half)
        k.epilogue(
            [gate, up],
            [pair, pair],
            lambda g, u, r, c: epilogue.finish(g, r, c, (r < self.tokens) & (c < linear.columns), up=u),
            at=(row, column >> 1),
        )


def tensor_map(base: Argument, columns: int, rows: int, box_rows: int) -> Argument:
    """The map of a row-major 16-bit matrix, in boxes of `box_rows` rows by one swizzle span."""
    return {
        "tensor_map": {
            "base": base,
            "dtype": "bf16",
            "shape": [columns, rows],
            "strides": [columns * 2],
            "box": [BLOCK_K, box_rows],
            "swizzle": 128,
            "l2_promotion": 256,
            "fill": "zero",
        }
    }
