"""Linear for many tokens: persistent, warp-specialised, wgmma from TMA-fed rings.

Roles:    load (1 thread) | math (two warpgroups of 64 rows each)
Ring ab:  load -> math; a stage is one tile of x and one of w, 64 of K deep
Timeline: load: for each tile, for each k: ab.produce
          math: for each tile, for each k: ab.consume -> wgmma (one in flight); then the epilogue:
                results go through shared memory and TMA, which runs on beside the next tile

The epilogue's own operands (residual) are brought into the L2 while the tile is multiplied, and the
epilogue takes 64 columns at a time, so that few of them are in registers. The first tile's w is
asked for before the predecessors end.

Blocks walk the tiles of the result in grouped raster order. Rows past T and columns past N are
computed on zeros (TMA fills them) and never stored. Floor: 2 T N K operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir import ir

from ..builder import KernelBuilder, Value
from ..builder import types as t
from ..gpu.body import Body, bytes_of, element, shape
from ..gpu.linear_body import Epilogue, LinearBody
from ..kernel import Argument, Expression, ceildiv, mul

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


BLOCKS_N = (256, 224, 192, 160, 128, 96, 64)
"""Widths of a tile, best for bandwidth of shared memory first."""


def cost(config: Config, n: int, tokens: int) -> float:
    """Turns of the slowest multiprocessor, each as long as its tile is wide.

    A turn of a tile of width b takes b + 24 units: the multiply, and what does not shrink with it
    (measured on an H200: 128-wide tiles reach 0.9 of the rate of 256-wide ones).
    """
    tiles = -(-tokens // config.block_m) * -(-n // config.block_n)
    return -(-tiles // SMS) * (config.block_n + 24)


def candidates(n: int, tokens: int) -> list[Config]:
    """Legal configurations, cheapest first, the wider tile among equals."""
    staging = 2 * 2 * ROWS * 64 * 2
    found = []
    for block_n in BLOCKS_N:
        stage = (128 + block_n) * BLOCK_K * 2
        found.append(Config(block_n=block_n, stages=min(8, (SHARED_BYTES - 2048 - staging) // stage)))
    return sorted(found, key=lambda c: (cost(c, n, tokens), -c.block_n))


def choose(n: int, tokens: int) -> Config:
    return candidates(n, tokens)[0]


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
        # Columns of a gated tile are halved.
        self.columns = config.block_n // (1 if linear.glu is None else 2)
        self.part, self.slab = parts(self.columns, bytes_of(element(linear.result)), bool(linear.extra))
        self.staging_type = t.smem((ROWS, self.slab), element(linear.result), self.slab * self.out_bytes)
        self.out_map = t.tensor_map((ROWS, self.slab), element(linear.result), self.slab * self.out_bytes)
        # TMA needs whole 16-byte rows.
        self.through_tma = linear.columns * self.out_bytes % 16 == 0
        # Operands of the shape of the result; a row vector is in the L2 after its first use.
        self.matrices = [
            a for a in linear.extra if len(shape(a)) == 2 and linear.columns * bytes_of(element(a)) % 16 == 0
        ]

    @property
    def out_bytes(self) -> int:
        return bytes_of(element(self.linear.result))

    def build(self) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
        k, config, linear = self.k, self.config, self.linear
        extra = {"out_map": self.out_map} if self.through_tma else {}
        ahead = {f"ahead{i}": t.tensor_map((128, 64), element(a), 0) for i, a in enumerate(self.matrices)}
        self.a, self.b, self.tokens, *memory = k.arguments(
            a=self.maps[0], b=self.maps[1], tokens=t.i32(), **linear.parameters(), **ahead, **extra
        )
        self.out = memory.pop() if self.through_tma else None
        self.ahead = [memory.pop() for _ in ahead]
        with k.body():
            self.ring = k.ring(config.stages, *self.slots)
            if self.through_tma:
                self.staging = k.shared(self.staging_type, per_warpgroup=True, buffers=2)
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
            tensor_map(linear.body.operand(linear.input), linear.k, "max_rows", config.block_m, element(linear.input)),
            tensor_map(linear.body.operand(linear.weight), linear.k, linear.n, config.block_n, element(linear.weight)),
            {"i32": rows},
            *linear.arguments(),
        ]
        for a in self.matrices:
            arguments.append(
                tensor_map(linear.body.operand(a), linear.columns, "max_rows", 128, element(a), 64, swizzle=0)
            )
        if self.through_tma:
            out = element(linear.result)
            arguments.append(
                tensor_map({"result": 0}, linear.columns, "max_rows", ROWS, out, self.slab, self.slab * self.out_bytes)
            )
        return k, (grid, 1, 1), arguments

    def _tile(self, work: Value) -> tuple[Value, Value]:
        """First row and first column of a tile."""
        m, n = self.k.raster(work, self.tile_rows, self.tile_columns, self.config.group)
        return m * self.config.block_m, n * self.config.block_n

    def _load(self) -> None:
        k = self.k
        head = min(self.config.stages, self.steps)

        def load_x(i: Value, m0: Value, tile: Value) -> None:
            k.tma_load(self.a, [m0, i * BLOCK_K], tile)

        def load_w(i: Value, n0: Value, tile: Value) -> None:
            k.tma_load(self.b, [n0, i * BLOCK_K], tile)

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
        fragments = [product]
        if linear.glu is not None:
            fragments = list(k.deinterleave(product, t.frag((ROWS, self.columns), t.f32())))
            column = column >> 1
        types = [pair] * len(fragments)

        if self.out is None:
            self._store(epilogue, fragments, types, row, column)
            return

        last_row, last_pair = self.tokens - 1, linear.columns - 2

        def near(r: Value, c: Value) -> tuple[Value, Value]:
            """A place that exists: what lies outside is not stored, so it may read anything."""
            return r.min(last_row), c.min(last_pair) if linear.n % config.block_n else c

        def value(*at: Value) -> Value:
            *elements, r, c = at
            factors, loaded = elements[: len(fragments)], elements[len(fragments) :]
            known = dict(zip(self.matrices, loaded, strict=True))
            return epilogue.value(factors, *near(r, c), None, known).to(element(linear.result))

        def ask(first: int) -> list[Value]:
            """The operands of the part that begins at column `first`."""
            if first >= self.columns:
                return []
            shape_of = k.fill(k.f32(0.0), some)
            return [
                k.map(
                    [shape_of], [pair], lambda _, r, c, a=a: epilogue.load(a, *near(r, c), 2), [some],
                    at=(row, column + first),
                )
                for a in self.matrices
            ]  # fmt: skip

        result = t.frag((ROWS, self.part), element(linear.result))
        some = t.frag((ROWS, self.part), t.f32())
        operands = ask(0)
        for first in range(0, self.columns, self.part):
            whole = self.part == self.columns
            factors = fragments if whole else [k.columns(f, first, some) for f in fragments]
            # Asked for before the part at hand is stored, so that they travel meanwhile.
            following = ask(first + self.part)
            done = k.map(
                [*factors, *operands], types + [pair] * len(operands), value, [result], at=(row, column + first)
            )
            k.store_tma(done, self.staging, self.out, [row, column + first])
            operands = following

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


def parts(columns: int, element_bytes: int, loads: bool) -> tuple[int, int]:
    """(columns finished at once, columns of one TMA store) for an epilogue of so many columns.

    An epilogue without operands is finished whole. One that loads takes 64 columns where it can, in
    two stores, so that loads of a part meet the store of the part before it.
    """
    slabs = [span // element_bytes for span in (128, 64, 32)]
    if not loads:
        return columns, next(slab for slab in slabs if columns % slab == 0)
    for part in (64, 32):
        if columns % part == 0:
            return part, part // 2
    return slabs[-1], slabs[-1]


def tensor_map(
    base: Argument,
    columns: int,
    rows: Expression,
    box_rows: int,
    dtype: ir.Type,
    box_columns: int = BLOCK_K,
    swizzle: int = 128,
) -> Argument:
    """The map of a row-major matrix, in boxes of `box_rows` by `box_columns`."""
    return {
        "tensor_map": {
            "base": base,
            "dtype": str(dtype),
            "shape": [columns, rows],
            "strides": [columns * bytes_of(dtype)],
            "box": [box_columns, box_rows],
            "swizzle": swizzle,
            "l2_promotion": 256,
            "fill": "zero",
        }
    }
