"""Linear for few tokens: weights as the M operand, tokens as N, one pass over the weights.

Roles:    load (1 thread) | math (1 to 4 warpgroups)
Ring wx:  load -> math; a stage is `rows` rows of w and all tokens of x, block_k of K deep
Timeline: load: w for the whole ring, wait for the predecessors, x for the same stages, then both
          math: for each k: wx.consume -> wgmma (`linear_sum`); then the epilogue, transposed

Each block owns consecutive rows of w, so few that every multiprocessor gets one block; warpgroup g
takes those from 64 g on, the last one those that end with the tile, so that it computes some rows
again. With many tokens the x that every block reads is more than its w: then two blocks, a cluster,
take 2 times the rows and half of K each, and add up through each other's shared memory in a fixed
order. Time is the bytes of w over the bandwidth: everything else hides behind them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mlir import ir

from ..builder import KernelBuilder, Value
from ..builder import types as t
from ..chips import HOPPER, Chip
from ..gpu.body import Body, bytes_of, element
from ..gpu.linear_body import Epilogue, LinearBody
from ..kernel import Argument, Expression, ceildiv
from .linear_maps import SPAN_BYTES, tensor_map
from .linear_sum import Operands, product, sums

REGISTERS = {1: 128, 2: 128, 3: 64, 4: 32}
"""By the number of math warpgroups: float32 sums that a thread has registers for."""
WIDTHS = (8, 16, 32, 64, 128)
"""Token counts that kernels are made for; a batch takes the next larger one."""


@dataclass(frozen=True)
class Config:
    """Rows of w and tokens of a block, how many blocks share the K of a tile, and the ring."""

    rows: int
    tokens: int
    block_k: int
    stages: int
    split: int = 1
    element_bytes: int = 2

    @property
    def groups(self) -> int:
        return -(-self.rows // 64)

    def why_invalid(self, gated: bool, chip: Chip = HOPPER) -> str | None:
        """None, or the rule that the configuration breaks."""
        step = 16 if gated else 8
        if self.rows % step or not step <= self.rows <= 256:
            return f"rows must be a multiple of {step} up to 256, got {self.rows}"
        if self.split not in (1, 2):
            return f"expected a split of K in 1 or 2, got {self.split}"
        if self.tokens % (8 * self.split) or not 8 <= self.tokens <= 256:
            return f"tokens must be a multiple of {8 * self.split} up to 256, got {self.tokens}"
        if self.element_bytes not in (1, 2):
            return f"expected elements of 1 or 2 bytes, got {self.element_bytes}"
        if self.block_k % self.span or not self.span <= self.block_k <= 4 * self.span:
            return f"block_k must be a multiple of {self.span} up to {4 * self.span}, got {self.block_k}"
        if sums(self.tokens, self.block_k // self.span, self.element_bytes == 1) > REGISTERS[self.groups]:
            return f"{self.tokens} tokens take more registers than a thread of {self.groups} warpgroups has"
        if self.stages < 2 or self.shared_bytes > chip.shared_bytes:
            return f"{self.stages} stages take {self.shared_bytes} of {chip.shared_bytes} bytes"
        return None

    @property
    def span(self) -> int:
        """Elements of one swizzle span."""
        return SPAN_BYTES // self.element_bytes

    @property
    def stage_bytes(self) -> int:
        depth = self.block_k * self.element_bytes
        return _up(self.rows * depth, 1024) + self.tokens * depth

    @property
    def shared_bytes(self) -> int:
        """The ring with its barriers, what a wgmma reads past its own rows, and the other block's sums."""
        overread = max(0, 64 - self.rows) * SPAN_BYTES
        received = self.groups * 64 * self.tokens * 2 if self.split == 2 else 0
        return self.stages * (self.stage_bytes + 16) + overread + received + 1024


def candidates(
    n: int, k: int, tokens: int, gated: bool, group: int = 1, chip: Chip = HOPPER, element_bytes: int = 2
) -> list[Config]:
    """Every legal configuration worth a measurement, the deepest ring for each.

    group: rows of w that one block must hold together.
    """
    step = math.lcm(16 if gated else 8, group)
    found = []
    for split in (1, 2):
        blocks_of_rows = chip.multiprocessors // split
        waves = range(1, 2 + -(-n // (blocks_of_rows * 128)))
        for rows in sorted({min(256, _up(-(-n // (blocks_of_rows * wave)), step)) for wave in waves}):
            for depth in (512, 256, 128):
                block_k = depth // element_bytes
                config = _deepest(rows, tokens, block_k, k, split, chip, element_bytes)
                if config.why_invalid(gated, chip) is None and (split == 1 or k >= 4 * block_k):
                    found.append(config)
    return list(dict.fromkeys(found))


def _deepest(rows: int, tokens: int, block_k: int, k: int, split: int, chip: Chip, element_bytes: int) -> Config:
    block_k = min(block_k, _up(k, SPAN_BYTES // element_bytes))
    steps = -(-k // (block_k * split))
    config = Config(rows, tokens, block_k, 0, split, element_bytes)
    stages = (chip.shared_bytes - config.shared_bytes) // (config.stage_bytes + 16)
    return replace(config, stages=min(16, stages, max(2, steps)))


def cost(config: Config, n: int, k: int, chip: Chip = HOPPER) -> float:
    """Expected microseconds: the bytes of a block through memory and through the L2.

    Of a split over pairs of blocks measurements say (H200): a wgmma takes 64 rows, so blocks of 32 waste half of
    it and read x twice as often; with 128 tokens blocks of 64 gain too, those of 48 lose more by the sum than they
    win.
    """
    sms = chip.multiprocessors
    blocks = -(-n // config.rows) * config.split
    depth = k / config.split * config.element_bytes
    # A multiprocessor takes at most its share of the memory.
    memory = config.rows * depth / (chip.memory_bytes_per_us / sms)
    cache = (config.rows + config.tokens) * depth / chip.cache_bytes_per_us
    # Blocks that wait for a free multiprocessor fill gaps of a last wave, but each starts anew.
    waves = max(1.0, (blocks / sms + -(-blocks // sms)) / 2)
    # A shallow ring waits for each of its stages.
    shallow = 1.0 + max(0, 4 - config.stages) * 0.25
    if config.tokens > 16:
        shallow += max(0, 6 - config.stages) * 0.003
    whole = -(-n // sms)
    pays = k >= 2048 and ((config.tokens >= 64 and whole <= 32) or (config.tokens >= 128 and 56 < whole <= 64))
    return waves * (max(memory, cache) * shallow + 1.0) + (0.0 if (config.split == 2) == pays else 5.0)


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def build(
    kernel_op: Any, config: Config, suffix: str = "", chip: Chip = HOPPER
) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: one block for each `config.rows` rows of w."""
    linear = LinearBody(Body(kernel_op))
    linear.check(float8=True)
    if reason := config.why_invalid(linear.glu is not None, chip):
        raise ValueError(reason)
    if config.element_bytes != bytes_of(element(linear.input)):
        raise ValueError(f"a schedule for elements of {config.element_bytes} bytes, beside {linear.input.type}")
    return _Kernel(linear, config, suffix).build()


class _Kernel:
    def __init__(self, linear: LinearBody, config: Config, suffix: str):
        self.linear, self.config = linear, config
        dtype, weight = element(linear.input), element(linear.weight)
        self.maps = (
            t.tensor_map((config.rows, config.span), weight),
            t.tensor_map((config.tokens, config.span), dtype),
        )
        self.slots = [
            t.smem((config.rows, config.block_k), weight, 128),
            t.smem((config.tokens, config.block_k), dtype, 128),
        ]
        mine = t.smem((64, config.block_k), weight, 128, slab_rows=config.rows)

        def take(w: Value, x: Value) -> tuple[Value, Value]:
            return self.k.warpgroup_slice(w, 64, mine, clamped=config.rows >= 64), x

        self.operands = Operands(dtype, config.rows, config.tokens, config.block_k, take)
        # Blocks of a cluster take equal parts; what lies past K arrives as zero.
        self.steps = -(-linear.k // (config.block_k * config.split))
        self.k = KernelBuilder(
            linear.body.name + suffix,
            threads=128 * config.groups + 32,
            pdl=True,
            min_blocks=1,
            cluster=2 if config.split == 2 else None,
        )

    def build(self) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
        k, config, linear = self.k, self.config, self.linear
        self.w, self.x, self.tokens, *memory = k.arguments(
            w=self.maps[0], x=self.maps[1], tokens=t.i32(), **linear.parameters()
        )
        with k.body():
            self.ring = k.ring(config.stages, *self.slots)
            block = k.program_id()
            if config.split == 2:
                self.rank = k.cluster_rank()
                self.first_k = self.rank * (self.steps * config.block_k)
                block = block >> 1
            self.first_row = block * config.rows
            self.first_token = k.program_id("y") * config.tokens
            with k.role("math", warps=4 * config.groups):
                self._math(Epilogue(k, linear, memory))
            with k.role("load", warps=1, elected=True):
                self._load()
        arguments: list[Argument] = [
            tensor_map(linear.body.operand(linear.weight), linear.k, linear.n, config.rows, element(linear.weight)),
            tensor_map(linear.body.operand(linear.input), linear.k, "max_rows", config.tokens, element(linear.input)),
            {"i32": "rows"},
            *linear.arguments(),
        ]
        return k, (-(-linear.n // config.rows) * config.split, ceildiv("rows", config.tokens), 1), arguments

    def _at(self, step: Value) -> Value:
        at = step * self.config.block_k
        return at + self.first_k if self.config.split == 2 else at

    def _load_w(self, step: Value, tile: Value) -> None:
        self.k.tma_load(self.w, [self.first_row, self._at(step)], tile, cache="evict_first")

    def _load_x(self, step: Value, tile: Value) -> None:
        self.k.tma_load(self.x, [self.first_token, self._at(step)], tile)

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

        sum_ = product(k, self.ring, self.slots, self.steps, self.operands)
        token = self.first_token
        if config.split == 2:
            sum_ = k.cluster_reduce(sum_, t.frag((64, config.tokens // 2), t.f32()))
            token = token + self.rank * (config.tokens // 2)
        self._finish(epilogue, sum_, token)

    def _finish(self, epilogue: Epilogue, sum_: Value, first_token: Value) -> None:
        """Row r, column c of the fragment is output `first + r` of token `first_token + c`."""
        k, config, linear = self.k, self.config, self.linear
        own = k.warpgroup_index() * 64
        # The last warpgroup starts early and leaves the rows before its own to the one before it.
        start = own.min(config.rows - 64) if config.rows >= 64 else own
        skipped, first = own - start, self.first_row + start

        def inside(row: Value, column: Value, token: Value, halves: int) -> Value:
            good = (column < linear.columns) & (token < self.tokens)
            if config.rows < 64:
                return good & (row < config.rows // halves)
            return good if config.rows % 64 == 0 else good & (row * halves >= skipped)

        last_token, last_column = self.tokens - 1, linear.columns - 1
        halves = 1 if linear.glu is None else 2
        first = first if linear.glu is None else first >> 1
        layout = "" if linear.glu is None else "half_rows"

        def value(*at: Value, target: ir.Value | None = None) -> Value:
            """Finished, read at a place that exists even where the element does not."""
            *factors, row, token = at
            column = (first + row).min(last_column)
            return epilogue.value(factors, token.min(last_token), column, None, target=target)

        def store(v: Value, row: Value, token: Value) -> None:
            column = first + row
            epilogue.store(v, token, column, inside(row, column, token, halves))

        tokens = config.tokens // config.split
        fragments = [sum_]
        if linear.glu is not None:
            fragments = list(k.deinterleave(sum_, t.frag((32, tokens), t.f32(), layout), rows=True))
        # 32 tokens at a time, all loads before the first store, which they could not pass. Barriers keep the
        # parts apart: ptxas would make the addresses of all of them at once, and spill.
        part = min(tokens, 32)
        some = t.frag((64 // halves, part), t.f32(), layout)
        types = [t.f32()] * len(fragments)

        def finish(value: Callable[..., Value], store: Callable[..., None]) -> None:
            for c in range(0, tokens, part):
                factors = fragments if part == tokens else [k.columns(f, c, some) for f in fragments]
                done = k.map(factors, types, value, [some], at=(0, first_token + c))
                k.epilogue([done], [t.f32()], store, at=(0, first_token + c))
                if part < tokens:
                    k.barrier("warpgroup")

        residual_sum = linear.residual_sum()
        if residual_sum is None:
            finish(value, store)
            return
        # The residual stream lies on its result: memory adds, and nothing is loaded.
        residual, rest = residual_sum

        def add(v: Value, row: Value, token: Value) -> None:
            epilogue.add(v, token, first + row, inside(row, first + row, token, halves))

        in_place = k.same_address(epilogue.out, epilogue.memory(residual))
        with k.if_(in_place):
            finish(partial(value, target=rest), add)
        with k.if_(in_place ^ True):
            finish(value, store)
