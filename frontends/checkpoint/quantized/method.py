"""What a quantization method offers: which layers of a checkpoint it quantized, and how they are stored."""

from __future__ import annotations

import abc
import re
from typing import Any

from llmc.frontends.checkpoint.base import Checkpoint
from llmc.frontends.checkpoint.quantized.description import LayerDescription
from llmc.frontends.errors import FrontendError


class Tensors:
    """The names, dtypes and shapes of a checkpoint's files, with errors that name the layer."""

    def __init__(self, files: Checkpoint):
        self.files = files
        self.names = set(files.names())

    def has(self, module: str, suffix: str) -> bool:
        return f"{module}.{suffix}" in self.names

    def dtype(self, module: str, suffix: str) -> str:
        return self.files.dtype(f"{module}.{suffix}")

    def shape(self, module: str, suffix: str, rank: int) -> tuple[int, ...]:
        """Raises FrontendError when there is no such tensor, or none of that rank."""
        name = f"{module}.{suffix}"
        if name not in self.names:
            raise FrontendError(f"the quantized layer '{module}' lacks '{name}'; fetch the checkpoint again")
        shape = tuple(self.files.shape(name))
        if len(shape) != rank:
            raise FrontendError(f"'{name}' has shape {list(shape)}: expected {rank} dimensions; the file is damaged")
        return shape

    def modules(self, *suffixes: str) -> list[str]:
        """Modules that have a tensor of one of these suffixes, sorted."""
        return sorted(
            {
                name.removesuffix(f".{suffix}")
                for suffix in suffixes
                for name in self.names
                if name.endswith(f".{suffix}")
            }
        )


class Method(abc.ABC):
    """One kind of quantization configuration. Raises FrontendError from the constructor for what is not read."""

    #: For messages: "GPTQ", "compressed-tensors".
    name: str

    #: Tensors of a module that hold scales of keys and values.
    kv_suffixes: tuple[str, ...] = ("k_scale", "v_scale", "kv_scale")

    @abc.abstractmethod
    def modules(self, tensors: Tensors) -> list[str]:
        """The quantized linears."""

    @abc.abstractmethod
    def describe(self, module: str, tensors: Tensors) -> LayerDescription:
        """What one of them stores."""

    def refuse(self, field: str, found: Any, expected: str) -> FrontendError:
        return FrontendError(
            f"the checkpoint's quantization ({self.name}) has {field} = {found!r}, which llmc does not read: "
            f"expected {expected}; use a checkpoint in another format, or the unquantized model with --qformat"
        )


def integer(method: Method, fields: dict[str, Any], name: str, default: int | None = None) -> int:
    """A whole number of a configuration."""
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise method.refuse(name, value, "a whole number")
    return value


def group_of(method: Method, value: int, module: str, in_features: int) -> int:
    """Checks a group size (-1: all in features) against a layer; returns 0 for all of them."""
    if value == -1:
        return 0
    if value < 1:
        raise method.refuse("group_size", value, "-1 or a positive number")
    if in_features % value:
        raise FrontendError(
            f"the quantized layer '{module}' has {in_features} in features, which groups of {value} do not divide: "
            f"the group size of the quantization configuration ({method.name}) does not fit the weights"
        )
    return value


def matches(pattern: str, module: str) -> bool:
    """A target or an entry of an ignore list, as compressed-tensors has them: a name, or re: and an expression."""
    if pattern.startswith("re:"):
        return re.match(pattern.removeprefix("re:"), module) is not None
    return pattern == module
