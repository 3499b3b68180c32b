"""Linear for many tokens: persistent, warp-specialised, wgmma from TMA-fed rings.

Roles:    load (1 thread) | math (two warpgroups of 64 rows each)
Ring ab:  load -> math; a stage is one tile of x and one of w, 64 of K deep
Timeline: load: for each tile, for each k: ab.produce
          math: for each tile, for each k: ab.consume -> wgmma (one in flight); then the epilogue:
                16-bit results go through shared memory and TMA, which runs on beside the next
                tile; float32 results (residuals, logits) are stored from registers

Blocks walk the tiles of the result in grouped raster order. Rows past T and columns past N are
computed on zeros (TMA fills them) and never stored. Floor: 2 T N K operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir import ir

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


BLOCKS_N = (256, 192, 160, 128, 96, 64)
"""Widths of a tile, best for bandwidth of shared memory first."""


def choose(n: int, tokens: int) -> Config:
    """The tile with the fewest turns of the slowest multiprocessor, the wider one among equals.

    A turn of a tile of width b takes b + 24 units: the multiply, and what does not shrink with it
    (measured on an H200: 128-wide tiles reach 0.9 of the rate of 256-wide ones).
    """
    rows = -(-tokens // 128)

    def cost(block_n: int) -> float:
        return -(-rows * -(-n // block_n) // SMS) * (block_n + 24)

    best = min(BLOCKS_N, key=lambda b: (cost(b), -b))
    staging = 2 * 2 * ROWS * 64 * 2
    stage = (128 + best) * BLOCK_K * 2
    return Config(block_n=best, stages=min(8, (SHARED_BYTES - 2048 - staging) // stage))


def build(
    kernel_op: Any, config: Config, suffix: str = ""
) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: one block a multiprocessor, fewer when there are fewer tiles."""
    if reason := config.why_invalid():
        raise ValueError(reason)
    linear = LinearBody(Body(kernel_op))
    linear.check()
    return _Kernel(linear, config, suffix).build()


class _Kernel:
    def __init__(self, linear: LinearBody, config: Config, suffix: str):
        self.linear, self.config = linear, config
        dtype = element(linear.input)
        a, b = (config.block_m, BLOCK_K), (config.block_n, BLOCK_K)
        self.maps = t.tensor_map(a, dtype), t.tensor_map(b, element(linear.weight))
        self.slots = [t.smem(a, dtype, 128), t.smem(b, dtype, 128)]
        self.rows_type = t.smem((ROWS, BLOCK_K), dtype, 128, slab_rows=config.block_m)
        self.acc = t.acc(ROWS, config.block_n, t.f32())
        self.steps = -(-linear.k // BLOCK_K)
        self.k = KernelBuilder(linear.body.name + suffix, threads=384, pdl=True, min_blocks=1)
        # TMA needs whole 16-byte rows; columns of a gated tile are halved. An epilogue that loads
        # would hold its operands beside both fragments: too many registers.
        self.columns = config.block_n // (1 if linear.glu is None else 2)
        self.through_tma = (
            element(linear.result) in (t.bf16(), t.f16())
            and not linear.extra
            and linear.columns % 8 == 0
            and self.columns % 64 == 0
        )
        self.out_map = t.tensor_map((ROWS, 64), element(linear.result)) if self.through_tma else None

    def build(self) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
        k, config, linear = self.k, self.config, self.linear
        extra = {"out_map": self.out_map} if self.through_tma else {}
        self.a, self.b, self.tokens, *memory = k.arguments(
            a=self.maps[0], b=self.maps[1], tokens=t.i32(), **linear.parameters(), **extra
        )
        self.out = memory.pop() if self.through_tma else None
        with k.body():
            self.ring = k.ring(config.stages, *self.slots)
            if self.through_tma:
                staging = t.smem((ROWS, 64), element(linear.result), 128)
                self.staging = k.shared(staging, per_warpgroup=True, buffers=2)
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
            tensor_map(linear.body.operand(linear.input), linear.k, "max_rows", config.block_m),
            tensor_map(linear.body.operand(linear.weight), linear.k, linear.n, config.block_n),
            {"i32": rows},
            *linear.arguments(),
        ]
        if self.through_tma:
            arguments.append(tensor_map({"result": 0}, linear.columns, "max_rows", ROWS))
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
        k, linear = self.k, self.linear
        pair = t.vector(2, t.f32())
        fragments = [product]
        if linear.glu is not None:
            fragments = list(k.deinterleave(product, t.frag((ROWS, self.columns), t.f32())))
            column = column >> 1
        types = [pair] * len(fragments)

        if self.out is None:
            self._store(epilogue, fragments, types, row, column)
            return

        def value(*at: Value) -> Value:
            *factors, r, c = at
            return epilogue.value(factors, r, c, None).to(element(linear.result))

        result = t.frag((ROWS, self.columns), element(linear.result))
        done = k.map(fragments, types, value, [result], at=(row, column))
        k.store_tma(done, self.staging, self.out, [row, column])

    def _store(
        self, epilogue: Epilogue, fragments: list[Value], types: list[ir.Type], row: Value, column: Value
    ) -> None:
        """Stores from registers. Tiles that lie inside, nearly all, test nothing, so that the loads of
        their epilogue travel together."""
        k, columns = self.k, self.linear.columns
        whole = (row + ROWS <= self.tokens) & (column + self.columns <= columns)

        def store(*at: Value) -> None:
            *factors, r, c = at
            epilogue.finish(factors, r, c, None)

        def store_inside(*at: Value) -> None:
            *factors, r, c = at
            epilogue.finish(factors, r, c, (r < self.tokens) & (c < columns))

        with k.if_(whole):
            k.epilogue(fragments, types, store, at=(row, column))
        with k.if_(whole ^ True):
            k.epilogue(fragments, types, store_inside, at=(row, column))


def tensor_map(base: Argument, columns: int, rows: Expression, box_rows: int) -> Argument:
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
