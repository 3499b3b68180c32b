"""Weight recipes: how a stored tensor is made from tensors of the checkpoint.

The passes build recipes as attributes (`#llm.source`, `#llm.concat`, ...); this module reads their
assembly and evaluates them a range of rows at a time, so that a model of any size is packed in the
memory of a few row chunks. Definitions: dialects/llm/LlmAttrs.td.
"""

from __future__ import annotations

import abc
import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from llmc.compiler.quantization.codes import CodeFormat, quantize_rows
from llmc.compiler.quantization.stored_source import StoredPart, check_readable, has_stored
from llmc.compiler.recipe_error import RecipeError

Shape = tuple[int, ...]
Watch = Callable[[CodeFormat, np.ndarray, np.ndarray, np.ndarray], None]


class TensorSource(Protocol):
    """The part of a checkpoint that recipes read."""

    def names(self) -> list[str]: ...

    def shape(self, name: str) -> Shape: ...

    def read(self, name: str, rows: slice | None = None) -> np.ndarray: ...


class Recipe(abc.ABC):
    """A tensor that can be read by ranges of rows (its first dimension)."""

    @abc.abstractmethod
    def shape(self, source: TensorSource) -> Shape:
        """Logical shape. Raises RecipeError when the parts do not fit."""

    @abc.abstractmethod
    def read(self, source: TensorSource, begin: int, end: int) -> np.ndarray:
        """Rows `begin` to `end` (exclusive), [end - begin, ...], in the parts' own dtype."""

    @abc.abstractmethod
    def parts(self) -> tuple[Recipe, ...]:
        """The recipes that this one is made of."""

    def sources(self) -> Iterator[str]:
        """Names of the checkpoint tensors, in order, with repetitions."""
        for part in self.parts():
            yield from part.sources()


@dataclasses.dataclass(frozen=True)
class Source(Recipe):
    """A tensor of the checkpoint."""

    name: str

    def shape(self, source: TensorSource) -> Shape:
        check_readable(source, self.name)
        return tuple(source.shape(self.name))

    def read(self, source: TensorSource, begin: int, end: int) -> np.ndarray:
        return source.read(self.name, slice(begin, end))

    def parts(self) -> tuple[Recipe, ...]:
        return ()

    def sources(self) -> Iterator[str]:
        yield self.name


@dataclasses.dataclass(frozen=True)
class Transpose(Recipe):
    """Its part with the two dimensions exchanged."""

    part: Recipe

    def shape(self, source: TensorSource) -> Shape:
        shape = self.part.shape(source)
        if len(shape) != 2:
            raise RecipeError(f"transpose needs a matrix, found shape {list(shape)}")
        return shape[::-1]

    def read(self, source: TensorSource, begin: int, end: int) -> np.ndarray:
        rows = self.part.shape(source)[0]
        # One column range needs every row: gather it by row chunks.
        columns = [
            self.part.read(source, at, min(at + _GATHER_ROWS, rows))[:, begin:end]
            for at in range(0, rows, _GATHER_ROWS)
        ]
        return np.concatenate(columns, axis=0).T

    def parts(self) -> tuple[Recipe, ...]:
        return (self.part,)


_GATHER_ROWS = 4096


@dataclasses.dataclass(frozen=True)
class Concat(Recipe):
    """Its parts joined along `dim`."""

    of: tuple[Recipe, ...]
    dim: int

    def shape(self, source: TensorSource) -> Shape:
        shapes = [part.shape(source) for part in self.of]
        first = shapes[0]
        if not 0 <= self.dim < len(first):
            raise RecipeError(f"concat along dimension {self.dim} of shape {list(first)}")
        for shape in shapes[1:]:
            if len(shape) != len(first) or any(
                a != b for d, (a, b) in enumerate(zip(shape, first, strict=True)) if d != self.dim
            ):
                raise RecipeError(f"concat along dimension {self.dim} of shapes {list(first)} and {list(shape)}")
        total = sum(shape[self.dim] for shape in shapes)
        return (*first[: self.dim], total, *first[self.dim + 1 :])

    def read(self, source: TensorSource, begin: int, end: int) -> np.ndarray:
        if self.dim > 0:
            return _join([part.read(source, begin, end) for part in self.of], self.dim)
        chunks = []
        start = 0
        for part in self.of:
            rows = part.shape(source)[0]
            low, high = max(begin - start, 0), min(end - start, rows)
            if low < high:
                chunks.append(part.read(source, low, high))
            start += rows
        return _join(chunks, 0)

    def parts(self) -> tuple[Recipe, ...]:
        return self.of


@dataclasses.dataclass(frozen=True)
class Interleave(Recipe):
    """`block` slices of `dim` from each part in turn."""

    of: tuple[Recipe, ...]
    dim: int
    block: int

    def shape(self, source: TensorSource) -> Shape:
        shapes = {part.shape(source) for part in self.of}
        if len(shapes) != 1:
            raise RecipeError(f"interleave of different shapes {sorted(map(list, shapes))}")
        shape = list(shapes.pop())
        if not 0 <= self.dim < len(shape) or self.block < 1 or shape[self.dim] % self.block:
            raise RecipeError(f"interleave along dimension {self.dim} of shape {shape} in blocks of {self.block}")
        shape[self.dim] *= len(self.of)
        return tuple(shape)

    def read(self, source: TensorSource, begin: int, end: int) -> np.ndarray:
        if self.dim > 0:
            return self._weave([part.read(source, begin, end) for part in self.of])
        # Whole periods around the range, then the range itself.
        period = self.block * len(self.of)
        low = begin // period * self.block
        high = -(-end // period) * self.block
        woven = self._weave([part.read(source, low, high) for part in self.of])
        skip = begin - low * len(self.of)
        return woven[skip : skip + end - begin]

    def _weave(self, arrays: list[np.ndarray]) -> np.ndarray:
        dim, block = self.dim, self.block
        shape = arrays[0].shape
        blocked = (*shape[:dim], shape[dim] // block, block, *shape[dim + 1 :])
        stacked = np.stack([a.reshape(blocked) for a in arrays], axis=dim + 1)
        return stacked.reshape(*shape[:dim], shape[dim] * len(arrays), *shape[dim + 1 :])

    def parts(self) -> tuple[Recipe, ...]:
        return self.of


@dataclasses.dataclass(frozen=True)
class Slice(Recipe):
    """Elements `begin` to `end` (exclusive) of `dim`."""

    part: Recipe
    dim: int
    begin: int
    end: int

    def shape(self, source: TensorSource) -> Shape:
        shape = list(self.part.shape(source))
        if not 0 <= self.dim < len(shape) or not 0 <= self.begin < self.end <= shape[self.dim]:
            raise RecipeError(f"slice [{self.begin}, {self.end}) of dimension {self.dim} of shape {shape}")
        shape[self.dim] = self.end - self.begin
        return tuple(shape)

    def read(self, source: TensorSource, begin: int, end: int) -> np.ndarray:
        if self.dim == 0:
            return self.part.read(source, self.begin + begin, self.begin + end)
        index = (slice(None),) * self.dim + (slice(self.begin, self.end),)
        return self.part.read(source, begin, end)[index]

    def parts(self) -> tuple[Recipe, ...]:
        return (self.part,)


@dataclasses.dataclass(frozen=True)
class Offset(Recipe):
    """Its part plus a constant, added in float32."""

    part: Recipe
    value: float

    def shape(self, source: TensorSource) -> Shape:
        return self.part.shape(source)

    def read(self, source: TensorSource, begin: int, end: int) -> np.ndarray:
        return self.part.read(source, begin, end).astype(np.float32) + np.float32(self.value)

    def parts(self) -> tuple[Recipe, ...]:
        return (self.part,)


@dataclasses.dataclass(frozen=True)
class Codes(Recipe):
    """Its part, a matrix, quantized; the scales are those of `Scales` of the same fields.

    Where the checkpoint stores codes and scales of this format, they are taken as they are.
    """

    part: Recipe
    format: CodeFormat

    def shape(self, source: TensorSource) -> Shape:
        shape = self.part.shape(self.stored(source, "codes") or source)
        self.format.scale_shape(shape)
        return shape

    def read(self, source: TensorSource, begin: int, end: int) -> np.ndarray:
        return self.quantize(source, begin, end)[0]

    def quantize(
        self, source: TensorSource, begin: int, end: int, watch: Watch | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Codes [end - begin, K] and float32 scales [end - begin, groups] of a range of rows.

        watch: is shown the format, the rows, their codes and their scales, where codes are made here.
        """
        codes, scales = self.stored(source, "codes"), self.stored(source, "scales")
        if codes is not None and scales is not None:
            return self.part.read(codes, begin, end), self.part.read(scales, begin, end)
        rows = self.part.read(source, begin, end)
        made = quantize_rows(rows, self.format)
        if watch is not None:
            watch(self.format, rows, *made)
        return made

    def stored(self, source: TensorSource, part: str) -> StoredPart | None:
        """What the checkpoint stores as `part` of the matrix; None: nothing, codes are made of values."""
        if not has_stored(source, self.part.sources(), self.format):
            return None
        if not _moves_rows(self.part):
            raise RecipeError(f"columns of {', '.join(self.part.sources())} would move, and with them their scales")
        return StoredPart(source, part, self.format.group)

    def parts(self) -> tuple[Recipe, ...]:
        return (self.part,)


@dataclasses.dataclass(frozen=True)
class Scales(Recipe):
    """The float32 scales of a quantized matrix."""

    part: Recipe
    format: CodeFormat

    def shape(self, source: TensorSource) -> Shape:
        return self.format.scale_shape(Codes(self.part, self.format).shape(source))

    def read(self, source: TensorSource, begin: int, end: int) -> np.ndarray:
        return Codes(self.part, self.format).quantize(source, begin, end)[1]

    def parts(self) -> tuple[Recipe, ...]:
        return (self.part,)


@dataclasses.dataclass(frozen=True)
class Zeros(Recipe):
    """The int8 zero points of a matrix that the checkpoint stores quantized."""

    part: Recipe
    format: CodeFormat

    def shape(self, source: TensorSource) -> Shape:
        return self.part.shape(self._stored(source))

    def read(self, source: TensorSource, begin: int, end: int) -> np.ndarray:
        return self.part.read(self._stored(source), begin, end)

    def _stored(self, source: TensorSource) -> StoredPart:
        zeros = Codes(self.part, self.format).stored(source, "zeros")
        if zeros is None:
            raise RecipeError(f"{', '.join(self.part.sources())}: expected a checkpoint that stores zero points")
        return zeros

    def parts(self) -> tuple[Recipe, ...]:
        return (self.part,)


def _moves_rows(recipe: Recipe) -> bool:
    """Whether a recipe does no more than move whole rows."""
    if isinstance(recipe, Concat | Interleave | Slice):
        return recipe.dim == 0 and all(map(_moves_rows, recipe.parts()))
    return isinstance(recipe, Source)


def _join(arrays: list[np.ndarray], dim: int) -> np.ndarray:
    """Concatenation; parts of different storage types meet in float32."""
    if len(arrays) == 1:
        return arrays[0]
    if len({array.dtype for array in arrays}) > 1:
        arrays = [array.astype(np.float32) for array in arrays]
    return np.concatenate(arrays, axis=dim)


def parse_recipe(text: str) -> Recipe:
    """Reads the assembly of a recipe attribute. Raises RecipeError with the place of an error."""
    parser = _Parser(text)
    recipe = parser.recipe()
    parser.expect("end")
    return recipe


_TOKEN = re.compile(
    r"""\s*(?:(?P<name>\#?[A-Za-z_][\w.]*)
      | "(?P<string>(?:[^"\\]|\\.)*)"
      | (?P<number>-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?))
      | (?P<mark>[<>\[\],=:])
      | (?P<end>$))""",
    re.VERBOSE,
)


class _Parser:
    """Recursive descent over the assembly formats of LlmAttrs.td."""

    def __init__(self, text: str):
        self._text = text
        self._at = 0

    def recipe(self) -> Recipe:
        kind = self.expect("name")
        self.mark("<")
        builders = {
            "#llm.source": lambda: Source(_unescape(self.expect("string"))),
            "#llm.transpose": lambda: Transpose(self.recipe()),
            "#llm.concat": lambda: Concat(self._list(), self._field("dim")),
            "#llm.interleave": lambda: Interleave(self._list(), self._field("dim"), self._field("block")),
            "#llm.slice": lambda: Slice(self.recipe(), self._field("dim"), self._field("begin"), self._field("end")),
            "#llm.offset": lambda: Offset(self.recipe(), self._constant()),
            "#llm.codes": lambda: Codes(self.recipe(), self._format()),
            "#llm.scales": lambda: Scales(self.recipe(), self._format()),
            "#llm.zeros": lambda: Zeros(self.recipe(), dataclasses.replace(self._format(), zeros=True)),
        }
        if kind not in builders:
            raise RecipeError(f"unknown recipe {kind} in {self._text}")
        recipe = builders[kind]()
        self.mark(">")
        return recipe

    def _list(self) -> tuple[Recipe, ...]:
        self.mark("[")
        parts = [self.recipe()]
        while self._peek("mark") == ",":
            self.mark(",")
            parts.append(self.recipe())
        self.mark("]")
        return tuple(parts)

    def _field(self, name: str) -> int:
        self._key(name)
        return int(self.expect("number"))

    def _key(self, name: str) -> None:
        self.mark(",")
        if self.expect("name") != name:
            raise self._error(f"'{name} ='")
        self.mark("=")

    def _format(self) -> CodeFormat:
        self._key("to")
        format = CodeFormat(self.expect("name"), self._field("group"))
        if self._peek("mark") != ",":
            return format
        self._key("zeros")
        if (text := self.expect("name")) not in ("true", "false"):
            raise self._error(f"true or false, found {text},")
        return dataclasses.replace(format, zeros=text == "true")

    def _constant(self) -> float:
        self.mark(",")
        text = self.expect("number")
        if self._peek("mark") == ":":
            self.mark(":")
            self.expect("name")
        return float(text)

    def mark(self, mark: str) -> None:
        if self.expect("mark") != mark:
            raise self._error(f"'{mark}'")

    def _peek(self, group: str) -> str | None:
        match = _TOKEN.match(self._text, self._at)
        return match.group(group) if match else None

    def expect(self, group: str) -> str:
        match = _TOKEN.match(self._text, self._at)
        if match is None or match.group(group) is None:
            raise self._error(group)
        self._at = match.end()
        return match.group(group)

    def _error(self, wanted: str) -> RecipeError:
        return RecipeError(f"expected {wanted} at character {self._at} of {self._text}")


def _unescape(text: str) -> str:
    """MLIR prints a special character of a string as backslash and two hex digits."""
    named = re.sub(r'\\(["\\])', r"\1", text)
    return re.sub(
        r"(?:\\[0-9A-Fa-f]{2})+",
        lambda m: bytes.fromhex(m.group(0).replace("\\", "")).decode("utf-8", "replace"),
        named,
    )
