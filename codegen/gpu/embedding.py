"""Embedding: rows of the table by token id, converted to the residual's type.

One block a row; each thread copies vectors of 8. What follows the look-up in the kernel (a
scale, a sum with positions) is replayed on the elements. Floor: the bytes of the rows.
"""

from __future__ import annotations

from typing import Any

from ..builder import KernelBuilder, Value
from ..builder import types as t
from ..kernel import Argument, Expression
from .body import Body, element, last, pointer
from .replay import Replay

THREADS = 128


def build(kernel_op: Any) -> tuple[KernelBuilder, tuple[Expression, ...], list[Argument]]:
    """Grid: one block for each of the T rows."""
    body = Body(kernel_op)
    lookup = body.find("llm.embedding")
    ids, table = lookup.operands
    (result,) = body.results
    hidden = last(table)
    width = 8 if hidden % 8 == 0 else 1
    extra = [a for a in body.block.arguments if a not in (ids, table)]

    k = KernelBuilder(body.name, threads=THREADS, pdl=True)
    parameters = {f"extra{i}": pointer(a) for i, a in enumerate(extra)}
    ids_, table_, out, *rest = k.arguments(
        ids=t.ptr(t.i32()), table=pointer(table, weight=True), out=pointer(result), **parameters
    )
    with k.body():
        k.pdl_launch()
        k.pdl_wait()
        row = k.program_id()
        source, target = k.load(ids_, row) * hidden, row * hidden

        def copy(column: Value) -> None:
            found = k.load(table_, source + column, count=width).to(t.f32())

            def load_extra(memory: Value) -> Value:
                return k.load(memory, target + column, count=width).to(t.f32())

            operands = {a: (lambda m=m: load_extra(m)) for a, m in zip(extra, rest, strict=True)}
            value = Replay(k, {lookup.results[0]: found}, operands).value(result)
            k.store(value.to(element(result)), out, target + column)

        k.for_each(0, hidden, copy, vector=width)
    arguments: list[Argument] = [body.operand(ids), body.operand(table), {"result": 0}]
    arguments += [body.operand(a) for a in extra]
    return k, ("T", 1, 1), arguments
