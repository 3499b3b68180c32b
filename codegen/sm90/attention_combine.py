"""Adds up the splits of split attention: one block a token and KV head, one warp a query head.

Roles:      all threads
Timeline:   find the sequence of the token and its number of splits; end where it is one
            each warp: largest maximum and sum of the ends over the splits, a lane a split;
            then the splits, scaled to them, a lane 4 columns

The order of every sum is fixed by the number of splits. Floor: the bytes of the parts, out of L2.
"""

from __future__ import annotations

import math
from typing import Any

from ..builder import KernelBuilder, Value, select
from ..builder import types as t
from ..builder.approx import reciprocal
from ..gpu.attention_tile import ROWS, AttentionTile
from ..kernel import Argument, Expression
from .attention_split import Config, ends_offset, schedule

WARPS = 4
UNROLL = 8
"""Splits whose loads a lane has in flight."""


def build(kernel_op: Any, config: Config, suffix: str) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: T tokens by KV heads. Reads what `attention_split` left in the workspace."""
    tile = AttentionTile(kernel_op, ROWS)
    k = KernelBuilder(tile.body.name + suffix, threads=32 * WARPS, pdl=True)
    ids, f32s = t.ptr(t.i32(), constant=True), t.ptr(t.f32())
    out, part, ends, starts, lengths, sequences, tokens = k.arguments(
        out=t.ptr(tile.dtype), part=f32s, ends=f32s, starts=ids, lengths=ids, sequences=t.i32(), tokens=t.i32()
    )
    with k.body():
        plan = schedule(tile, k, starts, lengths, sequences, config.splitting)
        token = k.program_id()
        # In a step of decodes alone the token is the sequence; else search.
        guess = token.min(sequences - 1)
        hit = (k.load(starts, guess) <= token) & (k.load(starts, guess + 1) > token)
        low, high = select(hit, guess, 0), select(hit, guess, sequences)
        sequence = plan.bisect(lambda s: k.load(starts, s + 1) <= token, low, high)
        # Tokens past the last sequence are padding.
        splits = select(sequence < sequences, plan.cut(sequence.min(sequences - 1)).splits, 1)
        first = token * tile.heads + k.program_id("y") * tile.group
        k.pdl_launch()
        k.pdl_wait()
        with k.if_(splits > 1):

            def head(i: Value) -> None:
                _combine(k, tile, splits, first + i, tokens * tile.heads, out, part, ends)

            k.for_(k.warp_index(), tile.group, WARPS, head)
    body = tile.body
    return k, ("T", tile.kv.heads, 1), [
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
    """Row `packed` of the [T, heads] rows, by one warp; its parts are `slab` rows apart."""
    dim = tile.dim

    def maximum_of(split: Value) -> Value:
        return k.load(ends, (split * slab + packed) * 2)

    highest = k.for_each(0, splits, lambda s, m: m.max(maximum_of(s)), [k.f32(-math.inf)], scope="warp")
    highest = k.reduce("max", highest, scope="warp")

    def weigh(s: Value, total: Value) -> Value:
        return total + (maximum_of(s) - highest).exp2() * k.load(ends, (s * slab + packed) * 2 + 1)

    total = k.reduce("add", k.for_each(0, splits, weigh, [k.f32(0.0)], scope="warp"), scope="warp")

    def columns(column: Value) -> None:
        def some(first: Value, added: Value) -> Value:
            for u in range(UNROLL):
                split = first + u
                inside = split < splits
                at = split * slab + packed
                maximum = k.load(ends, at * 2, condition=inside)
                weight = select(inside, (maximum - highest).exp2(), 0.0)
                added = added + k.load(part, at * dim + column, count=4, condition=inside) * weight
            return added

        added = k.for_(0, splits, UNROLL, some, [k.zero(t.vector(4, t.f32()))])
        k.store((added * reciprocal(total)).to(tile.dtype), out, packed * dim + column)

    k.for_each(0, dim, columns, vector=4, scope="warp")
