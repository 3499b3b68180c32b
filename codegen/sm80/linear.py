"""Linear on mma.sync: weights as the M operand, tokens as N, for any number of tokens.

Threads:    1 or 2 warpgroups; all copy, each multiplies all rows of w by its share of the tokens
Ring wx:    a stage is `rows` rows of w and `tokens` of x, block_k of K deep
Timeline:   copy stages - 1 stages; for each k: wait for a stage, copy the one after the last, multiply;
            then the epilogue, some tokens at a time: the product to shared memory, where a token's outputs
            are neighbours, and from there 8 outputs a thread through the epilogue to global memory

The order of the sum over K is fixed, so a token's bits do not depend on its neighbours; they do on the
tile, which the number of tokens chooses. Blocks are numbered in groups that share w and x in the L2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..builder import KernelBuilder, Value
from ..builder import types as t
from ..chips import Chip
from ..gpu.body import Body, element
from ..gpu.linear_body import Epilogue, LinearBody
from ..kernel import Argument, Expression, ceildiv, mul

RESERVED = 1024
"""Bytes of shared memory that the system takes for each block."""
PAD = 4
"""Floats between the rows of the staged product: threads of a warp then hit different banks."""
RASTER = 8


MOST_STAGES = 12


@dataclass(frozen=True)
class Config:
    """Rows of w and tokens of a block, the depth of a stage, warpgroups, and tokens of an epilogue part."""

    rows: int
    tokens: int
    block_k: int
    groups: int = 1
    part: int = 32

    @property
    def suffix(self) -> str:
        return f"_t{self.tokens}"

    @property
    def swizzle(self) -> int:
        return min(128, self.block_k * 2)

    @property
    def stage_bytes(self) -> int:
        return (self.rows + self.tokens) * self.block_k * 2

    @property
    def staging_bytes(self) -> int:
        return self.part * (self.rows + PAD) * 4

    def stages(self, n: int, tokens: int, chip: Chip) -> int:
        """The deepest ring for so many tokens: that of half a multiprocessor where there are blocks for two."""
        blocks = -(-n // self.rows) * -(-tokens // self.tokens)
        half = self._stages_in((chip.shared_bytes + RESERVED) // 2 - RESERVED)
        return half if half >= 3 and blocks > chip.multiprocessors else self._stages_in(chip.shared_bytes)

    def _stages_in(self, shared_bytes: int) -> int:
        return min(MOST_STAGES, (shared_bytes - self.staging_bytes) // self.stage_bytes)


CONFIGS = (
    Config(rows=64, tokens=16, block_k=64, part=16),
    Config(rows=64, tokens=64, block_k=64),
    Config(rows=128, tokens=128, block_k=32, groups=2),
)
"""By the tokens of a batch: the first that holds them all, else the last."""


def build(kernel_op: Any, config: Config, stages: int) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: one block for each `config.rows` rows of w and `config.tokens` tokens."""
    linear = LinearBody(Body(kernel_op))
    linear.check()
    return _Kernel(linear, config, stages).build()


class _Kernel:
    def __init__(self, linear: LinearBody, config: Config, stages: int):
        self.linear, self.config, self.stages = linear, config, stages
        dtype = element(linear.weight)
        self.slots = [
            t.smem((config.rows, config.block_k), dtype, config.swizzle),
            t.smem((config.tokens, config.block_k), dtype, config.swizzle),
        ]
        own_tokens = config.tokens // config.groups
        rows, depth = (64, config.block_k), config.block_k
        self.w_rows = t.smem(rows, dtype, config.swizzle, slab_rows=config.rows)
        self.x_rows = t.smem((own_tokens, depth), dtype, config.swizzle, slab_rows=config.tokens)
        self.operand = t.frag(rows, dtype, "operand_a")
        self.product = t.frag((64, own_tokens), t.f32())
        # Says to ptxas how many registers there are.
        blocks = 2 if config.rows * config.tokens <= 128 * 128 else 1
        name = linear.body.name + config.suffix
        self.k = KernelBuilder(name, threads=128 * config.groups, pdl=True, min_blocks=blocks)

    def build(self) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
        k, config, linear = self.k, self.config, self.linear
        self.w, self.x, self.tokens, self.steps, *memory = k.arguments(
            w=t.ptr(element(linear.weight), constant=True),
            x=t.ptr(element(linear.input)),
            tokens=t.i32(),
            # Not a constant: a short loop would be unrolled whole, into more registers than there are.
            steps=t.i32(),
            **linear.parameters(),
        )
        row_tiles = -(-linear.n // config.rows)
        with k.body():
            self.ring = k.ring(self.stages, *self.slots)
            self.staging = k.shared(t.smem((config.part, config.rows + PAD), t.f32()))
            k.pdl_launch()
            token_tiles = (self.tokens + (config.tokens - 1)) // config.tokens
            token_tile, row_tile = k.raster(k.program_id(), token_tiles, k.i32(row_tiles), RASTER)
            self.first_row, self.first_token = row_tile * config.rows, token_tile * config.tokens
            k.pdl_wait()
            self._finish(Epilogue(k, linear, memory), self._multiply())
        arguments: list[Argument] = [
            linear.body.operand(linear.weight),
            linear.body.operand(linear.input),
            {"i32": "rows"},
            {"i32": -(-linear.k // config.block_k)},
            *linear.arguments(),
        ]
        return k, (mul(ceildiv("rows", config.tokens), row_tiles), 1, 1), arguments

    def _copy(self, step: Value | int) -> None:
        """Fills the next stage with step `step`; steps past K are zeros."""
        k, linear = self.k, self.linear
        at = k.i32(step) * self.config.block_k
        with k.produce(self.ring, self.slots) as (w, x):
            k.copy_async(self.w, (self.first_row, at), w, rows=linear.n, columns=linear.k)
            k.copy_async(self.x, (self.first_token, at), x, rows=self.tokens, columns=linear.k)

    def _multiply(self) -> list[Value]:
        """The product: for each 64 rows of w, a fragment of them by the warpgroup's tokens."""
        k, config = self.k, self.config
        ahead = self.stages - 1
        for step in range(ahead):
            self._copy(step)

        def turn(step: Value, *sums: Value) -> list[Value]:
            w, x = k.acquire(self.ring, self.slots)
            # Into the stage of the turn before: all threads have met since.
            self._copy(step + ahead)
            if config.groups > 1:
                x = k.warpgroup_slice(x, config.tokens // config.groups, self.x_rows)
            parts = [w] if config.rows == 64 else [k.slice(w, [r, 0], self.w_rows) for r in range(0, config.rows, 64)]
            next_ = k.mma([k.load_matrix(part, self.operand) for part in parts], x, sums)
            k.release(self.ring)
            return list(next_) if isinstance(next_, tuple) else [next_]

        zeros = [k.fill(k.f32(0.0), self.product) for _ in range(config.rows // 64)]
        sums = k.for_(0, self.steps, 1, turn, zeros)
        return list(sums) if isinstance(sums, tuple) else [sums]

    def _finish(self, epilogue: Epilogue, sums: list[Value]) -> None:
        """Finishes and stores some tokens at a time."""
        k, config = self.k, self.config
        own_tokens = config.tokens // config.groups
        some = t.frag((64, min(config.part, own_tokens)), t.f32())
        for first in range(0, config.tokens, config.part):
            owner, column = divmod(first, own_tokens)

            def stage(column: int = column) -> None:
                for i, whole in enumerate(sums):
                    part = whole if self.product == some else k.columns(whole, column, some)
                    # Transposed: a token's outputs become neighbours.
                    k.epilogue(
                        [part], [t.f32()], lambda v, row, token: k.store(v, self.staging, token, row), at=(64 * i, 0)
                    )

            if config.groups == 1:
                stage()
            else:
                with k.if_(k.warpgroup_index().equals(owner)):
                    stage()
            k.barrier()
            self._store(epilogue, self.first_token + first)
            k.barrier()

    def _store(self, epilogue: Epilogue, first_token: Value) -> None:
        """The staged outputs, from token `first_token` on, through the epilogue to memory."""
        k, config, linear = self.k, self.config, self.linear
        halves = 1 if linear.glu is None else 2
        width = next(w for w in (8, 4, 2, 1) if linear.columns % w == 0)
        outputs = config.rows // halves
        chunks = outputs // width

        def finish(i: Value) -> None:
            row, first = i // chunks, (i % chunks) * width
            # Gate and up alternate in blocks of 8 rows of w.
            places = [first] if halves == 1 else [first // 8 * 16 + first % 8 + up for up in (0, 8)]
            factors = [k.load(self.staging, row, place, count=width) for place in places]
            token, column = first_token + row, self.first_row // halves + first
            inside = (token < self.tokens) & (column < linear.columns)
            with k.if_(inside):
                epilogue.finish(factors, token, column, None)

        k.for_each(0, config.part * chunks, finish)
