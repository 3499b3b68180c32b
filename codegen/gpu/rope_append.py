"""Rotary embedding of queries and keys, and the append to the paged KV cache.

One warp a head of one row: heads 0 .. Hq-1 are queries, then come the keys, then the values.
A query is normed (where the model norms queries), rotated and written to the result; a key
likewise goes to its slot of the cache, a value is copied to its own. Blocks of 8 warps cover
8 heads. Floor: the bytes of the packed row in, and of q, k and v out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..builder import KernelBuilder, Value
from ..builder import types as t
from ..kernel import Argument, Expression, UnsupportedKernel
from .body import Body, element, f64, last, pointer, shape
from .heads import Heads, trace
from .kv import KvLayer
from .replay import enum_name

WARPS = 8


class _Kernel:
    """The parts of one kernel while it is being built."""

    def __init__(self, kernel_op: Any):
        self.body = Body(kernel_op)
        append = self.body.find("llm.kv_append")
        self.kv, self.batch = append.operands[2], append.operands[3]
        if len(self.body.results) != 1:
            raise UnsupportedKernel(f"@{self.body.name}: expected the queries as the only result")
        (self.result,) = self.body.results
        self.queries = trace(self.body, self.result)
        self.keys = trace(self.body, append.operands[0])
        self.values = trace(self.body, append.operands[1])
        layer = KvLayer.of(self.kv)
        self.block_size, self.cache_element = layer.block, layer.element
        self.k = KernelBuilder(self.body.name, threads=32 * WARPS, pdl=True)
        self.tensors = [a for a in self.body.block.arguments if a != self.kv and a != self.batch]

    def build(self) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
        k = self.k
        types = {f"in{i}": pointer(a, weight=shape(a)[0] is not None) for i, a in enumerate(self.tensors)}
        cache = t.ptr(self.cache_element)
        *inputs, q, kc, vc, slots = k.arguments(**types, q=pointer(self.result), k=cache, v=cache, slots=t.ptr(t.i32()))
        self.memory = dict(zip(self.tensors, inputs, strict=True))
        heads = [self.queries, self.keys, self.values]
        total = sum(h.count for h in heads)
        with k.body():
            k.pdl_launch()
            k.pdl_wait()
            row = k.program_id()
            head = k.program_id("y") * WARPS + k.warp_index()
            first = 0
            for kind, out in zip(heads, (q, kc, vc), strict=True):
                inside = (head >= first) & (head < first + kind.count)
                with k.if_(inside):
                    own = head - first
                    if out is q:
                        base = (row * kind.count + own).to(t.i64()) * kind.dim
                    else:
                        slot = k.load(slots, row)
                        page = (slot // self.block_size).to(t.i64()) * kind.count + own.to(t.i64())
                        base = (page * self.block_size + (slot % self.block_size).to(t.i64())) * kind.dim
                    self._head(kind, row, own, functools.partial(self._store, out, base))
                first += kind.count
        arguments: list[Argument] = [self.body.operand(a) for a in self.tensors]
        arguments += [{"result": 0}, self.body.operand(self.kv, "k"), self.body.operand(self.kv, "v")]
        arguments += [self.body.operand(self.batch, "slots")]
        return k, ("T", -(-total // WARPS), 1), arguments

    def _store(self, out: Value, base: Value, i: Value, x: Value) -> None:
        target = element(self.result) if out.type == pointer(self.result) else self.cache_element
        self.k.store(x.to(target), out, base + i.to(t.i64()))

    def _head(self, kind: Heads, row: Value, own: Value, store: Callable[[Value, Value], None]) -> None:
        """Reads one head, applies norm and rotation, and hands each element to `store`."""
        k = self.k
        memory = self.memory[kind.source]
        base = row * kind.stride + own * kind.dim + kind.offset
        load: Callable[[Value], Value] = lambda i: k.load(memory, base + i).to(t.f32())  # noqa: E731
        if kind.norm is not None:
            load = self._normed(kind, load)
        rotated = 0
        if kind.rope is not None:
            half = last(kind.rope.operands[1])
            rotated = 2 * half
            cos, sin = (self.memory[o] for o in list(kind.rope.operands)[1:])
            adjacent = enum_name(kind.rope.attributes["style"]) == "interleaved"

            def rotate(i: Value) -> None:
                low, high = (i * 2, i * 2 + 1) if adjacent else (i, i + half)
                a, b = load(low), load(high)
                c, s = k.load(cos, row * half + i), k.load(sin, row * half + i)
                store(low, a * c - b * s)
                store(high, b * c + a * s)

            k.for_each(0, half, rotate, scope="warp")
        if rotated < kind.dim:
            k.for_each(rotated, kind.dim, lambda i: store(i, load(i)), scope="warp")

    def _normed(self, kind: Heads, load: Callable[[Value], Value]) -> Callable[[Value], Value]:
        k = self.k
        total = k.for_each(0, kind.dim, lambda i, s: s + load(i) * load(i), [k.f32(0.0)], scope="warp")
        scale = (k.reduce("add", total, scope="warp") * (1.0 / kind.dim) + f64(kind.norm, "eps")).rsqrt()
        if len(kind.norm.operands) == 1:
            return lambda i: load(i) * scale
        gamma = self.memory[kind.norm.operands[1]]
        return lambda i: load(i) * scale * k.load(gamma, i).to(t.f32())


def build(kernel_op: Any) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: T rows by blocks of 8 heads."""
    return _Kernel(kernel_op).build()
