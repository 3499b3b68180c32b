"""Types of the `tile` dialect, as functions of Python values.

Shapes are outermost dimension first. Element types are MLIR types; the usual ones are
given by name here (`f32()`, `bf16()`, ...), because MLIR types belong to a context.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir


def i1() -> ir.Type:
    return ir.IntegerType.get_signless(1)


def i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)


def i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def f32() -> ir.Type:
    return ir.F32Type.get()


def bf16() -> ir.Type:
    return ir.BF16Type.get()


def f16() -> ir.Type:
    return ir.F16Type.get()


def f8() -> ir.Type:
    """The 8-bit float of weights and activations: 4 bits of exponent, 3 of mantissa, no infinity."""
    return ir.Float8E4M3FNType.get()


def vector(count: int, element: ir.Type) -> ir.Type:
    """`vector<count x element>`, or the element itself for a count of 1."""
    return ir.VectorType.get([count], element) if count > 1 else element


def _tile(text: str) -> ir.Type:
    # The dialect's types have no builders in MLIR's C API: this file is the one place
    # that spells them.
    return ir.Type.parse(text)


def _shape(shape: Sequence[int], element: ir.Type) -> str:
    return "x".join(str(size) for size in shape) + f"x{element}"


def ptr(element: ir.Type, constant: bool = False) -> ir.Type:
    """Pointer into global memory; `constant` memory is written by no kernel of the step."""
    return _tile(f"!tile.ptr<{element}{', constant' if constant else ''}>")


def tensor_map(box: Sequence[int], element: ir.Type, swizzle: int = 128) -> ir.Type:
    """TMA descriptor whose instruction moves `box` elements."""
    return _tile(f"!tile.tensor_map<{_shape(box, element)}, swizzle = {swizzle}>")


def smem(shape: Sequence[int], element: ir.Type, swizzle: int = 0, slab_rows: int = 0) -> ir.Type:
    """Tile in shared memory; `slab_rows` only for a slice of a taller swizzled tile."""
    text = _shape(shape, element)
    if swizzle:
        text += f", swizzle = {swizzle}"
    if slab_rows:
        text += f", slab_rows = {slab_rows}"
    return _tile(f"!tile.smem<{text}>")


def ring(stages: int, slots: Sequence[ir.Type]) -> ir.Type:
    return _tile(f"!tile.ring<{stages}, {', '.join(str(slot) for slot in slots)}>")


def acc(rows: int, columns: int, element: ir.Type) -> ir.Type:
    """Accumulator in flight."""
    return _tile(f"!tile.acc<{rows}x{columns}x{element}>")


def frag(shape: Sequence[int], element: ir.Type, layout: str = "") -> ir.Type:
    """Settled fragment; layout '' (accumulator), 'half_rows', 'operand_a' or 'rows'."""
    return _tile(f"!tile.frag<{_shape(shape, element)}{', ' + layout if layout else ''}>")
