"""Adds up the splits of split attention: one block a token and query head.

Roles:      all threads
Timeline:   find the sequence of the token and its number of splits; end where it is one
            largest maximum over the splits; each warp sums every fourth split, scaled to it;
            the sum of the warps over the sum of the ends is the result

The order of every sum is fixed by the number of splits. Floor: the bytes of the parts, out of L2.
"""

from __future__ import annotations

import math
from typing import Any

from ..builder import KernelBuilder, Value, select
from ..builder import types as t
from ..kernel import Argument, Expression
from .attention_split import Config, ends_offset, schedule
from .attention_tile import ROWS, AttentionTile

WARPS = 4
UNROLL = 4
"""Splits whose loads a warp has in flight."""


def build(kernel_op: Any, config: Config, suffix: str) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: T tokens by query heads. Reads what `attention_split` left in the workspace."""
    tile = AttentionTile(kernel_op, ROWS)
    k = KernelBuilder(tile.body.name + suffix, threads=32 * WARPS, pdl=True)
    ids, f32s = t.ptr(t.i32(), constant=True), t.ptr(t.f32())
    out, part, ends, starts, lengths, sequences, tokens = k.arguments(
        out=t.ptr(tile.dtype), part=f32s, ends=f32s, starts=ids, lengths=ids, sequences=t.i32(), tokens=t.i32()
    )
    with k.body():
        plan = schedule(tile, k, starts, lengths, sequences, config.splitting)
        token = k.program_id()
        sequence = plan.bisect(lambda s: k.load(starts, s + 1) <= token)
        # Tokens past the last sequence are padding.
        splits = select(sequence < sequences, plan.cut(sequence.min(sequences - 1)).splits, 1)
        packed = token * tile.heads + k.program_id("y")
        k.pdl_wait()
        with k.if_(splits > 1):
            _combine(k, tile, splits, packed, tokens * tile.heads, out, part, ends)
        k.pdl_launch()
    body = tile.body
    return k, ("T", tile.heads, 1), [
        {"result": 0},
        {"workspace": 0},
        {"workspace": ends_offset(tile, config)},
        body.operand(tile.batch, "query_start"),
        body.operand(tile.batch, "kv_len"),
        {"i32": "S"},
        {"i32": "T"},
    ]  # fmt: skip


def _combine(
    k: KernelBuilder,
    tile: AttentionTile,
    splits: Value,
    packed: Value,
    slab: Value,
    out: Value,
    part: Value,
    ends: Value,
) -> None:
    """Row `packed` of the [T, heads] rows, whose parts are `slab` rows apart."""
    dim = tile.dim
    sums = k.shared(t.smem((WARPS, dim), t.f32()))

    def maximum_of(split: Value) -> Value:
        return k.load(ends, (split * slab + packed) * 2)

    highest = k.for_each(0, splits, lambda s, m: m.max(maximum_of(s)), [k.f32(-math.inf)], scope="warp")
    highest = k.reduce("max", highest, scope="warp")

    def weigh(s: Value, total: Value) -> Value:
        return total + (maximum_of(s) - highest).exp2() * k.load(ends, (s * slab + packed) * 2 + 1)

    total = k.reduce("add", k.for_each(0, splits, weigh, [k.f32(0.0)], scope="warp"), scope="warp")

    def columns(column: Value) -> None:
        def some(first: Value, total: Value) -> Value:
            for u in range(UNROLL):
                split = first + u * WARPS
                inside = split < splits
                at = split * slab + packed
                maximum = k.load(ends, at * 2, condition=inside)
                weight = select(inside, (maximum - highest).exp2(), 0.0)
                total = total + k.load(part, at * dim + column, count=4, condition=inside) * weight
            return total

        start = k.zero(t.vector(4, t.f32()))
        k.store(k.for_(k.warp_index(), splits, WARPS * UNROLL, some, [start]), sums, k.warp_index(), column)

    k.for_each(0, dim, columns, vector=4, scope="warp")
    k.barrier()

    def finish(column: Value) -> None:
        added = k.load(sums, 0, column)
        for warp in range(1, WARPS):
            added = added + k.load(sums, warp, column)
        k.store((added / total).to(tile.dtype), out, packed * dim + column)

    k.for_each(0, dim, finish)
