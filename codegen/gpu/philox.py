"""Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).

The same generator as the runtime's philox.h: four random words from a counter and a key.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..builder import Value, constant
from ..builder import types as t
from ..builder.values import Operand, i32

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10


def philox4x32(counter: Sequence[Operand], key: Sequence[Value]) -> list[Value]:
    """The four words of a block, as i32 values."""
    c = [i32(word) for word in counter]
    k0, k1 = key
    for _ in range(_ROUNDS):
        low0, high0 = _multiply(_MULTIPLIERS[0], c[0])
        low1, high1 = _multiply(_MULTIPLIERS[1], c[2])
        c = [high1 ^ c[1] ^ k0, low1, high0 ^ c[3] ^ k1, low0]
        k0, k1 = k0 + _WEYL[0], k1 + _WEYL[1]
    return c


def _multiply(factor: int, word: Value) -> tuple[Value, Value]:
    """(low, high) 32 bits of the 64-bit product."""
    product = word.to(t.i64()) * constant(factor, t.i64())
    return product.to(t.i32()), (product >> 32).to(t.i32())
