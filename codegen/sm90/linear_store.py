"""The end of a tile of `linear_large`: its epilogue, and the way of the results to memory.

Results go through shared memory and TMA, which runs on beside the next tile. A residual sum that
lies on its operand, as the residual stream does, is added up by the L2 and loads nothing; otherwise
an epilogue with operands takes 64 columns at a time, so that few of them are in registers. A row
that TMA cannot take, since it is no multiple of 16 bytes, is stored from registers.
"""

from __future__ import annotations

from mlir import ir

from ..builder import KernelBuilder, Value
from ..builder import types as t
from ..gpu.body import bytes_of, element, shape
from ..gpu.linear_body import Epilogue, LinearBody
from ..kernel import Argument
from .linear_maps import tensor_map
from .linear_sum import ROWS

BUFFER_BYTES = ROWS * 128
"""The most shared memory that one buffer of a warpgroup takes."""


class TileStore:
    """Where the results of a tile of `columns` columns (after a GLU) go, `buffers` stores in flight a warpgroup."""

    def __init__(self, k: KernelBuilder, linear: LinearBody, columns: int, buffers: int):
        self.k, self.linear, self.columns, self.buffers = k, linear, columns, buffers
        out = element(linear.result)
        self.part, self.slab = parts(columns, bytes_of(out), bool(linear.addends))
        self.type = t.smem((ROWS, self.slab), out, self.slab * bytes_of(out))
        # TMA needs whole 16-byte rows.
        self.through_tma = linear.columns * bytes_of(out) % 16 == 0
        # Operands of the shape of the result; a row vector is in the L2 after its first use.
        self.matrices = [
            a for a in linear.addends if len(shape(a)) == 2 and linear.columns * bytes_of(element(a)) % 16 == 0
        ]

    def parameters(self) -> dict[str, ir.Type]:
        """Of the kernel: the map of the result, where there is one."""
        if not self.through_tma:
            return {}
        out = element(self.linear.result)
        return {"out_map": t.tensor_map((ROWS, self.slab), out, self.slab * bytes_of(out))}

    def arguments(self) -> list[Argument]:
        if not self.through_tma:
            return []
        out = element(self.linear.result)
        columns, swizzle = self.linear.columns, self.slab * bytes_of(out)
        return [tensor_map({"result": 0}, columns, "max_rows", ROWS, out, self.slab, swizzle)]

    def begin(self, epilogue: Epilogue, tokens: Value, out: Value | None) -> None:
        """In the body of the kernel, before its roles; `out` is the map of the result."""
        self.epilogue, self.tokens, self.out = epilogue, tokens, out
        self.sum = self.linear.residual_sum() if out is not None else None
        if self.sum is not None:
            self.in_place = self.k.same_address(epilogue.out, epilogue.memory(self.sum[0]))
        if out is not None:
            self.staging = self.k.shared(self.type, per_warpgroup=True, buffers=self.buffers)

    def finish(self, product: Value, row: Value, column: Value) -> None:
        """Finishes and stores a warpgroup's fragment; `column` counts columns of the product."""
        k, linear = self.k, self.linear
        fragments = [product]
        if linear.glu is not None:
            fragments = list(k.deinterleave(product, t.frag((ROWS, self.columns), t.f32())))
            column = column >> 1
        if self.out is None:
            self._store(fragments, row, column)
            return
        if self.sum is None:
            self._store_tma(self.out, fragments, row, column)
            return
        with k.if_(self.in_place):
            self._add_tma(self.out, fragments, self.sum[1], row, column)
        with k.if_(self.in_place ^ True):
            self._store_tma(self.out, fragments, row, column)

    def _near(self, row: Value, column: Value) -> tuple[Value, Value]:
        """A place that exists: what lies outside is not stored, so it may read anything."""
        last_row, last_pair = self.tokens - 1, self.linear.columns - 2
        return row.min(last_row), column.min(last_pair) if self.linear.columns % self.columns else column

    def _add_tma(self, out: Value, fragments: list[Value], rest: ir.Value, row: Value, column: Value) -> None:
        """Adds `rest`, what the residual is added to, to the result in memory."""
        k, pair = self.k, t.vector(2, t.f32())

        def value(*at: Value) -> Value:
            *factors, r, c = at
            return self.epilogue.value(factors, *self._near(r, c), None, target=rest)

        # Whole, where nothing is loaded; in any case in as many slabs as there are buffers.
        part = self.columns if len(self.linear.addends) == 1 else self.part
        some = t.frag((ROWS, part), t.f32())
        for first in range(0, self.columns, part):
            factors = [k.columns(f, first, some) for f in fragments]
            done = k.map(factors, [pair] * len(factors), value, [some], at=(row, column + first))
            k.store_tma(done, self.staging, out, [row, column + first], accumulate=True)

    def _store_tma(self, out: Value, fragments: list[Value], row: Value, column: Value) -> None:
        k, linear, pair = self.k, self.linear, t.vector(2, t.f32())
        types = [pair] * len(fragments)

        def value(*at: Value) -> Value:
            *elements, r, c = at
            factors, loaded = elements[: len(fragments)], elements[len(fragments) :]
            known = dict(zip(self.matrices, loaded, strict=True))
            return self.epilogue.value(factors, *self._near(r, c), None, known).to(element(linear.result))

        result = t.frag((ROWS, self.part), element(linear.result))
        some = t.frag((ROWS, self.part), t.f32())

        def ask(first: int) -> list[Value]:
            """The operands of the part that begins at column `first`."""
            if first >= self.columns:
                return []
            shape_of = k.fill(k.f32(0.0), some)

            def load(a: ir.Value) -> Value:
                def one(_: Value, r: Value, c: Value) -> Value:
                    return self.epilogue.load(a, *self._near(r, c), 2)

                return k.map([shape_of], [pair], one, [some], at=(row, column + first))

            return [load(a) for a in self.matrices]

        operands = ask(0)
        for first in range(0, self.columns, self.part):
            whole = self.part == self.columns
            factors = fragments if whole else [k.columns(f, first, some) for f in fragments]
            # Asked for before the part at hand is stored, so that they travel meanwhile.
            following = ask(first + self.part)
            done = k.map(
                [*factors, *operands], types + [pair] * len(operands), value, [result], at=(row, column + first)
            )
            k.store_tma(done, self.staging, out, [row, column + first])
            operands = following

    def _store(self, fragments: list[Value], row: Value, column: Value) -> None:
        """Stores from registers. Tiles that lie inside, nearly all, test nothing, so that the loads of
        their epilogue travel together."""
        k, columns = self.k, self.linear.columns
        types = [t.vector(2, t.f32())] * len(fragments)
        whole = (row + ROWS <= self.tokens) & (column + self.columns <= columns)

        def store(*at: Value) -> None:
            *factors, r, c = at
            self.epilogue.finish(factors, r, c, None)

        def store_inside(*at: Value) -> None:
            *factors, r, c = at
            self.epilogue.finish(factors, r, c, (r < self.tokens) & (c < columns))

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
