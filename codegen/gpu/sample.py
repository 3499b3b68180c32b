"""Draws the next token of each row: `llm.sample`, as the runtime's sampler.h defines it.

One block a row. Greedy rows take one pass over the logits (an argmax). Other rows find the smallest
logit that top_k and top_p keep by bisection on the bits of an order-preserving integer key, one pass
a bit and cut that is in use, then take the argmax of logits plus Gumbel noise over what is kept. The
noise of a token depends on (seed, sample index, token id) alone.
"""

from __future__ import annotations

import math
from typing import Any

from ..builder import KernelBuilder, Value, constant, select
from ..builder import types as t
from ..builder.approx import log
from ..kernel import Argument, Expression
from .body import Body, last
from .philox import philox4x32

THREADS = 1024
LOG2E = math.log2(math.e)


class _Row:
    """One row of logits while its kernel is being built."""

    def __init__(self, k: KernelBuilder, logits: Value, base: Value, vocab: int):
        self.k, self.logits, self.base, self.vocab = k, logits, base, vocab

    def scaled(self, i: Value, scale: Value) -> Value:
        return self.k.load(self.logits, self.base + i.to(t.i64())) * scale

    def total(self, term: Any, zero: Value) -> Value:
        """Sum of term(i) over the row, in every thread."""
        partial = self.k.for_each(0, self.vocab, lambda i, s: s + term(i), [zero])
        return self.k.reduce("add", partial)

    def argmax(self, value: Any) -> tuple[Value, Value]:
        """(largest value(i), its lowest i)."""
        k = self.k

        def better(i: Value, best: Value, where: Value) -> tuple[Value, Value]:
            v = value(i)
            wins = v > best
            return select(wins, v, best), select(wins, i, where)

        start = [k.f32(-math.inf), k.i32(self.vocab)]
        return k.reduce("argmax", *k.for_each(0, self.vocab, better, start))


def order_key(x: Value) -> Value:
    """An unsigned integer that orders as the float does."""
    bits = x.bits()
    return select(bits.less_signed(0), bits ^ 0xFFFFFFFF, bits ^ 0x80000000)


def build(kernel_op: Any) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: one block for each of the R rows."""
    body = Body(kernel_op)
    op = body.find("llm.sample")
    vocab = last(op.operands[0])
    k = KernelBuilder(body.name, threads=THREADS, pdl=True)
    f32s, i32s = t.ptr(t.f32()), t.ptr(t.i32())
    logits, temperature, top_k, top_p, min_p, seed, index, out = k.arguments(
        logits=f32s, temperature=f32s, top_k=i32s, top_p=f32s, min_p=f32s, seed=t.ptr(t.i64()), index=i32s, out=i32s
    )
    with k.body():
        k.pdl_launch()
        k.pdl_wait()
        r = k.program_id()
        row = _Row(k, logits, r.to(t.i64()) * vocab, vocab)
        highest, first = row.argmax(lambda i: row.scaled(i, k.f32(1.0)))
        warmth = k.load(temperature, r)

        def draw() -> Value:
            scale = 1.0 / warmth
            # Scaling keeps the order, so the largest scaled logit is the scaled largest.
            top = highest * scale
            key = _cut(row, scale, top, k.load(top_k, r), k.load(top_p, r))
            limit = _min_p_limit(k, top, k.load(min_p, r))
            return _gumbel_max(row, scale, key, limit, k.load(seed, r), k.load(index, r))

        token = k.if_else(warmth.equals(0.0), lambda: first, draw, [t.i32()])
        # A NaN or infinite row is an error of the model, which the host reports.
        token = select((highest < math.inf) & (highest > -math.inf), token, constant(-1, t.i32()))
        with k.if_(k.thread_index().equals(0)):
            k.store(token, out, r)
    return k, ("rows", 1, 1), [*(body.operand(o) for o in op.operands), {"result": 0}]


def _cut(row: _Row, scale: Value, top: Value, top_k: Value, top_p: Value) -> Value:
    """Key of the smallest scaled logit that top_k and top_p keep (0 keeps all)."""
    k = row.k
    zero = k.i32(0)

    def bisect(reaches: Any) -> Value:
        """The largest key that `reaches`, bit by bit from the top."""

        def bit(b: Value, key: Value) -> Value:
            candidate = key | (k.i32(1) << (31 - b))
            return select(reaches(candidate), candidate, key)

        return k.for_(0, 32, 1, bit, [zero])

    def key_of(i: Value) -> Value:
        return order_key(row.scaled(i, scale))

    def count(key: Value) -> Value:
        return row.total(lambda i: (key_of(i) >= key).to(t.i32()), zero)

    def mass(key: Value) -> Value:
        def term(i: Value) -> Value:
            x = row.scaled(i, scale)
            return select(order_key(x) >= key, ((x - top) * LOG2E).exp2(), 0.0)

        return row.total(term, k.f32(0.0))

    uses_k = (top_k > 0) & (top_k < row.vocab)
    by_k = k.if_else(uses_k, lambda: bisect(lambda key: count(key) >= top_k), lambda: zero, [t.i32()])

    def nucleus() -> Value:
        needed = mass(by_k) * top_p
        return bisect(lambda key: mass(key.max(by_k)) >= needed).max(by_k)

    return k.if_else(top_p < 1.0, nucleus, lambda: by_k, [t.i32()])


def _min_p_limit(k: KernelBuilder, top: Value, min_p: Value) -> Value:
    """Scaled logits below this are cut; minus infinity when min_p is off."""
    return select(min_p > 0.0, top + log(min_p), -math.inf)


def _gumbel_max(row: _Row, scale: Value, key: Value, limit: Value, seed: Value, index: Value) -> Value:
    def noisy(i: Value) -> Value:
        x = row.scaled(i, scale)
        kept = (order_key(x) >= key) & (x >= limit)
        return select(kept, x + gumbel(i, seed, index), -math.inf)

    _, token = row.argmax(noisy)
    return token


def gumbel(i: Value, seed: Value, index: Value) -> Value:
    """-ln(-ln(1 - u)), u = (w + 0.5) / 2^32 for the token's random word w."""
    words = philox4x32((i // 4, index, 0, 0), (seed.to(t.i32()), (seed >> 32).to(t.i32())))
    lane = i % 4
    w = select(lane.equals(0), words[0], select(lane.equals(1), words[1], select(lane.equals(2), words[2], words[3])))
    u = (w.to(t.i64()).to(t.f32()) + 0.5) * 2.0**-32
    # 1 - u from the complement, which does not cancel; near 1 its logarithm would, so a series.
    rest = ((w ^ 0xFFFFFFFF).to(t.i64()).to(t.f32()) + 0.5) * 2.0**-32
    series = u * (u * (u * (u * 0.25 + 1.0 / 3.0) + 0.5) + 1.0)
    exponential = select(u < 2.0**-6, series, -log(rest))
    return -log(exponential)
