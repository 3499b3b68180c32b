"""What a quantized linear stores, as data: the layouts fill it in, `layer.py` reads by it.

Every layout holds codes [N, K] of N out features and K in features, and means

    w[n, k] = (code[n, k] - zero[n, g]) * scale[n, g],   g = order[k] if there is an order, else k // group.
"""

from __future__ import annotations

from dataclasses import dataclass

Shape = tuple[int, ...]

#: Types in which layouts keep scales.
FLOATS = ("f32", "f16", "bf16")


@dataclass(frozen=True)
class InputFormat:
    """How the rows that a linear multiplies are to be quantized.

    type:  MLIR name of the codes.
    scale: "token" (one a row, computed in the step), "tensor" (one for all rows, computed in the step), "group" (one
           for `group` values of a row, computed in the step) or "static" (stored in the checkpoint).
    """

    type: str
    scale: str


@dataclass(frozen=True)
class StoredFormat:
    """What the stored numbers are, whatever the layout.

    weight:  MLIR name of the codes: f8E4M3FN, i8 or i4.
    group:   in features that share a scale; 0: all of an out feature.
    zeros:   whether codes have zero points.
    ordered: whether a table says which group an in feature belongs to (GPTQ's desc_act).
    blocks:  whether scales are of two-dimensional blocks.
    """

    weight: str
    group: int
    zeros: bool = False
    ordered: bool = False
    blocks: bool = False
    inputs: InputFormat | None = None

    def __str__(self) -> str:
        names = {"f8E4M3FN": "8-bit floats", "i8": "8-bit integers", "i4": "4-bit integers"}
        text = names[self.weight]
        if self.blocks:
            text += f" in blocks of {self.group}"
        elif self.group:
            text += f" in groups of {self.group}"
        text += " with zero points" if self.zeros else ""
        text += " in activation order (desc_act)" if self.ordered else ""
        if self.inputs is None:
            return f"{text}, inputs as they are"
        scale = {"token": "a scale a token", "tensor": "one scale a step", "group": "a scale a group of a token",
                 "static": "one stored scale"}[self.inputs.scale]  # fmt: skip
        return f"{text}, inputs of {names[self.inputs.type]} with {scale}"


@dataclass(frozen=True)
class Packing:
    """Codes in 32-bit words, lowest bits first.

    bits:   of one code.
    places: where in its word each of 32 / bits consecutive codes lies; empty: in order.
    """

    bits: int
    places: tuple[int, ...] = ()

    @property
    def per_word(self) -> int:
        return 32 // self.bits

    def place(self, code: int) -> int:
        return self.places[code] if self.places else code

    def words(self, codes: int) -> int:
        return -(-codes // self.per_word)


@dataclass(frozen=True)
class Part:
    """One tensor of a layer: a matrix of out features and something else.

    suffix:      its name is the layer's with this behind.
    dtypes:      storage types that it may have, as `Checkpoint.dtype` spells them.
    shape:       shape that it must have.
    out_dim:     the dimension of the out features; None: it has none (one value for all of them).
    rows_per:    out features for which a stored row counts.
    packing:     how codes share words; None: one number each.
    packed_dim:  the dimension along which they do.
    added:       added to each unsigned number of a packing, within its bits where `wraps`; half of the range is then
                 subtracted.
    also_shapes: further shapes that it may have.
    also_none:   of zero points: a value beside 0 that means "symmetric" when all have it.
    """

    suffix: str
    dtypes: tuple[str, ...]
    shape: Shape
    out_dim: int | None = 0
    rows_per: int = 1
    packing: Packing | None = None
    packed_dim: int = 1
    added: int = 0
    wraps: bool = False
    also_shapes: tuple[Shape, ...] = ()
    also_none: tuple[int, ...] = ()


@dataclass(frozen=True)
class LayerDescription:
    """Everything that one quantized linear stores.

    module:      name of the layer; it stands for the tensor `<module>.weight` of a plain checkpoint.
    shape:       [N, K].
    order:       group of each in feature [K]; None: consecutive ones.
    input_scale: the scale of static inputs, one number.
    also:        suffixes of further tensors that the layer may store and that say nothing new.
    """

    module: str
    shape: tuple[int, int]
    format: StoredFormat
    codes: Part
    scales: Part
    zeros: Part | None = None
    order: Part | None = None
    input_scale: Part | None = None
    also: tuple[str, ...] = ()

    @property
    def weight(self) -> str:
        """The tensor that it stands for."""
        return f"{self.module}.weight"

    def parts(self) -> list[Part]:
        return [part for part in (self.codes, self.scales, self.zeros, self.order, self.input_scale) if part]

    def names(self) -> list[str]:
        """The tensors of the checkpoint that it consumes, those that may be absent included."""
        suffixes = [part.suffix for part in self.parts()]
        return [f"{self.module}.{suffix}" for suffix in (*suffixes, *self.also)]
