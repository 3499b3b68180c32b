"""Which rows of a ragged batch a block of an attention kernel works on."""

from __future__ import annotations

from ..builder import KernelBuilder, Value, select
from ..kernel import Expression, ceildiv, mul


def most_tiles(group: int, rows: int) -> Expression:
    """An upper bound of the tiles of all sequences, for a grid."""
    tiles: Expression = ["add", ceildiv(mul("T", group), rows), "S"]
    # A sequence has a token or more, so it has no more tiles than tokens while a token fits a tile.
    return ["min", "T", tiles] if group <= rows else tiles


def find_tile(
    k: KernelBuilder, starts: Value, sequences: Value, tokens: Value, *, group: int, rows: int
) -> tuple[Value, Value]:
    """(sequence, tile in it) of this block; sequence = S where there is no tile left.

    Row y of the grid, from the last, counts over the tiles of the sequences, ceil(q_len * group / rows)
    each: later tiles of a causal sequence are longer, so they begin first. With as many tokens as
    sequences each has one tile.
    """

    def tiles(s: Value) -> Value:
        count = (k.load(starts, s + 1) - k.load(starts, s)) * group
        return (count + (rows - 1)) // rows

    turn = k.num_programs("y") - 1 - k.program_id("y")

    # A select, not a short-circuit: past the end the clamped load is harmless.
    def further(s: Value, rest: Value) -> Value:
        clamped = s.min(sequences - 1)
        return (s < sequences) & (rest >= tiles(clamped))

    start = [k.i32(0), turn]
    if group <= rows:
        single = tokens.equals(sequences)
        start = [select(single, turn, 0), select(single, k.i32(0), turn)]
    sequence, tile = k.while_(further, lambda s, rest: (s + 1, rest - tiles(s)), start)
    return sequence, tile
