"""Linear for many tokens: persistent, warp-specialised, wgmma from TMA-fed rings.

Roles:    load (1 thread) | math (two or three warpgroups of 64 rows each)
Ring ab:  load -> math; a stage is one tile of x and one of w, 128 bytes of K deep
Timeline: load: for each tile, for each k: ab.produce
          math: for each tile, for each k: ab.consume -> wgmma (`linear_sum`); then the epilogue:
                results go through shared memory and TMA, which runs on beside the next tile

The epilogue's own operands (residual) are brought into the L2 while the tile is multiplied; what
happens at the end of a tile is in `linear_store`. The first tile's w is asked for before the
predecessors end.

Blocks walk the tiles of the result in grouped raster order. Rows past T and columns past N are
computed on zeros (TMA fills them) and never stored. Floor: 2 T N K operations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..builder import KernelBuilder, Value
from ..builder import types as t
from ..chips import HOPPER, Chip
from ..gpu.body import Body, bytes_of, element
from ..gpu.linear_body import Epilogue, LinearBody
from ..kernel import Argument, Expression, ceildiv, mul
from .linear_maps import SPAN_BYTES, span, tensor_map
from .linear_store import BUFFER_BYTES, TileStore
from .linear_sum import ROWS, Operands, product

REGISTERS = {2: (40, 232), 3: (32, 160)}
"""By the number of math warpgroups: registers of a thread that loads, and of one that multiplies."""
WIDEST = {(2, 2): 256, (3, 2): 192, (2, 1): 160, (3, 1): 96}
"""By warpgroups and bytes of an element: columns of a tile whose sums fit into the registers of a thread."""


@dataclass(frozen=True)
class Config:
    """Tile of the result, depth of the ring, rows of tiles walked together, stores in flight a warpgroup."""

    block_m: int = 128
    block_n: int = 256
    stages: int = 4
    group: int = 16
    buffers: int = 2
    element_bytes: int = 2

    @property
    def warpgroups(self) -> int:
        return self.block_m // ROWS

    @property
    def stage_bytes(self) -> int:
        return (self.block_m + self.block_n) * SPAN_BYTES

    @property
    def shared_bytes(self) -> int:
        """The ring with its barriers, and the buffers of stores."""
        return self.stages * (self.stage_bytes + 16) + self.warpgroups * self.buffers * BUFFER_BYTES + 1024

    def why_invalid(self, chip: Chip = HOPPER) -> str | None:
        """None, or the rule that the configuration breaks."""
        if self.element_bytes not in (1, 2):
            return f"expected elements of 1 or 2 bytes, got {self.element_bytes}"
        if self.block_m % ROWS or self.warpgroups not in REGISTERS:
            return f"block_m must be {' or '.join(str(ROWS * w) for w in REGISTERS)}, got {self.block_m}"
        widest = WIDEST[self.warpgroups, self.element_bytes]
        if self.block_n % 16 or not 16 <= self.block_n <= widest:
            return f"block_n must be a multiple of 16 in 16..{widest}, got {self.block_n}"
        if self.group < 1 or not 1 <= self.buffers <= 8:
            return f"group must be 1 or more and buffers 1 to 8, got {self.group} and {self.buffers}"
        if self.stages < 2 or self.shared_bytes > chip.shared_bytes:
            return f"{self.stages} stages take {self.shared_bytes} of {chip.shared_bytes} bytes"
        return None


BLOCKS_N = (256, 224, 192, 160, 128, 96, 64)
"""Widths of a tile, best for bandwidth of shared memory first."""


def cost(config: Config, n: int, k: int, tokens: int, chip: Chip = HOPPER) -> float:
    """Expected microseconds: turns of the slowest multiprocessor, or the bytes of w where those take longer; a tenth
    of the shorter one is not hidden by the other.

    A turn of a tile of width b takes as long as one of b + 24: the multiply, and what does not shrink with it
    (measured on an H200: 128-wide tiles reach 0.9 of the rate of 256-wide ones).
    """
    tiles = -(-tokens // config.block_m) * -(-n // config.block_n)
    rate = chip.matrix_ops_per_us * 2 / config.element_bytes
    turn = config.block_m * (config.block_n + 24) * k * 2 / (rate * (256 + 24) / 256)
    memory = (n + tokens) * k * config.element_bytes / chip.memory_bytes_per_us
    busy = -(-tiles // chip.multiprocessors) * turn
    return max(busy, memory) + 0.1 * min(busy, memory) + 3.0


def deepest(block_m: int, block_n: int, group: int = 16, chip: Chip = HOPPER, element_bytes: int = 2) -> Config:
    """The configuration with the most stages, up to 8, and two stores in flight where they leave it 4."""
    found = []
    for buffers in (2, 1):
        config = Config(block_m, block_n, 0, group, buffers, element_bytes)
        stages = min(8, (chip.shared_bytes - config.shared_bytes) // (config.stage_bytes + 16))
        found.append(replace(config, stages=stages))
    return found[0] if found[0].stages >= 4 else max(found, key=lambda c: c.stages)


def widest(chip: Chip = HOPPER, element_bytes: int = 2) -> Config:
    """The widest tile of 128 rows."""
    return deepest(128, WIDEST[2, element_bytes], chip=chip, element_bytes=element_bytes)


def candidates(chip: Chip = HOPPER, element_bytes: int = 2) -> list[Config]:
    """One configuration for each tile that is worth a measurement."""
    return [
        deepest(ROWS * warpgroups, block_n, chip=chip, element_bytes=element_bytes)
        for (warpgroups, bytes_), most in WIDEST.items()
        for block_n in BLOCKS_N
        if block_n <= most and bytes_ == element_bytes
    ]


def build(
    kernel_op: Any, config: Config, suffix: str = "", chip: Chip = HOPPER
) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: one block a multiprocessor, fewer when there are fewer tiles."""
    if reason := config.why_invalid(chip):
        raise ValueError(reason)
    linear = LinearBody(Body(kernel_op))
    linear.check(float8=True)
    if config.element_bytes != bytes_of(element(linear.input)):
        raise ValueError(f"a schedule for elements of {config.element_bytes} bytes, beside {linear.input.type}")
    return _Kernel(linear, config, suffix).build(chip)


class _Kernel:
    def __init__(self, linear: LinearBody, config: Config, suffix: str):
        self.linear, self.config = linear, config
        dtype = element(linear.input)
        self.depth = span(dtype)
        a, b = (config.block_m, self.depth), (config.block_n, self.depth)
        self.maps = t.tensor_map(a, dtype), t.tensor_map(b, element(linear.weight))
        self.slots = [t.smem(a, dtype, 128), t.smem(b, dtype, 128)]
        rows = t.smem((ROWS, self.depth), dtype, 128, slab_rows=config.block_m)

        def take(x: Value, w: Value) -> tuple[Value, Value]:
            return self.k.warpgroup_slice(x, ROWS, rows), w

        self.operands = Operands(dtype, config.block_m, config.block_n, self.depth, take)
        self.steps = -(-linear.k // self.depth)
        threads = 128 * (config.warpgroups + 1)
        self.k = KernelBuilder(linear.body.name + suffix, threads=threads, pdl=True, min_blocks=1)
        # Columns of a gated tile are halved.
        self.columns = config.block_n // (1 if linear.glu is None else 2)
        self.store = TileStore(self.k, linear, self.columns, config.buffers)

    def build(self, chip: Chip) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
        k, config, linear, store = self.k, self.config, self.linear, self.store
        ahead = {f"ahead{i}": t.tensor_map((config.block_m, 64), element(a), 0) for i, a in enumerate(store.matrices)}
        self.a, self.b, self.tokens, *memory = k.arguments(
            a=self.maps[0], b=self.maps[1], tokens=t.i32(), **linear.parameters(), **ahead, **store.parameters()
        )
        out = memory.pop() if store.through_tma else None
        self.ahead = [memory.pop() for _ in ahead][::-1]
        with k.body():
            self.ring = k.ring(config.stages, *self.slots)
            store.begin(Epilogue(k, linear, memory), self.tokens, out)
            self.tile_rows = (self.tokens + (config.block_m - 1)) // config.block_m
            self.tile_columns = k.i32(-(-linear.n // config.block_n))
            self.tiles = self.tile_rows * self.tile_columns
            self.first, self.stride = k.program_id(), k.num_programs()
            few, many = REGISTERS[config.warpgroups]
            with k.role("load", warps=1, regs=few, elected=True):
                self._load()
            with k.role("math", warps=4 * config.warpgroups, regs=many):
                self._math()
        rows: Expression = "rows"
        grid = ["min", chip.multiprocessors, mul(ceildiv(rows, config.block_m), -(-linear.n // config.block_n))]
        arguments: list[Argument] = [
            tensor_map(linear.body.operand(linear.input), linear.k, "max_rows", config.block_m, element(linear.input)),
            tensor_map(linear.body.operand(linear.weight), linear.k, linear.n, config.block_n, element(linear.weight)),
            {"i32": rows},
            *linear.arguments(),
        ]
        for a in store.matrices:
            operand, rows_of_box = linear.body.operand(a), config.block_m
            arguments.append(tensor_map(operand, linear.columns, "max_rows", rows_of_box, element(a), 64, swizzle=0))
        return k, (grid, 1, 1), [*arguments, *store.arguments()]

    def _tile(self, work: Value) -> tuple[Value, Value]:
        """First row and first column of a tile."""
        m, n = self.k.raster(work, self.tile_rows, self.tile_columns, self.config.group)
        return m * self.config.block_m, n * self.config.block_n

    def _load(self) -> None:
        k = self.k
        head = min(self.config.stages, self.steps)

        def load_x(i: Value, m0: Value, tile: Value) -> None:
            k.tma_load(self.a, [m0, i * self.depth], tile)

        def load_w(i: Value, n0: Value, tile: Value) -> None:
            k.tma_load(self.b, [n0, i * self.depth], tile)

        def both(i: Value, m0: Value, n0: Value) -> None:
            with k.produce(self.ring, self.slots) as (a, b):
                load_x(i, m0, a)
                load_w(i, n0, b)

        def begin(i: Value, n0: Value) -> None:
            with k.produce(self.ring, self.slots, part="begin") as (_, b):
                load_w(i, n0, b)

        def resume(i: Value, m0: Value) -> None:
            with k.produce(self.ring, self.slots, part="resume") as (a, _):
                load_x(i, m0, a)

        def look_ahead(m0: Value, n0: Value) -> None:
            column = n0 if self.linear.glu is None else n0 >> 1
            for map_ in self.ahead:
                for c in range(0, self.columns, 64):
                    k.prefetch(map_, [m0, column + c])

        def tile(work: Value) -> None:
            m0, n0 = self._tile(work)
            look_ahead(m0, n0)
            k.for_(0, self.steps, 1, lambda i: both(i, m0, n0))

        # There are at least as many tiles as blocks, so each block has a first one.
        m0, n0 = self._tile(self.first)
        k.for_(0, head, 1, lambda i: begin(i, n0))
        k.pdl_wait()
        k.for_(0, head, 1, lambda i: resume(i, m0))
        look_ahead(m0, n0)
        k.for_(head, self.steps, 1, lambda i: both(i, m0, n0))
        k.for_(self.first + self.stride, self.tiles, self.stride, tile)

    def _math(self) -> None:
        k = self.k
        k.pdl_wait()
        group = k.warpgroup_index()

        def tile(work: Value) -> None:
            m0, n0 = self._tile(work)
            self.store.finish(product(k, self.ring, self.slots, self.steps, self.operands), m0 + group * ROWS, n0)

        k.for_(self.first, self.tiles, self.stride, tile)
        k.pdl_launch()
