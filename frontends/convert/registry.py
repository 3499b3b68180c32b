"""Handlers of torch operators, by name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

#: Called with the builder, the operator being converted, and its operands as `Tensor`, `Weight`, number, list or None.
Handler = Callable[..., Any]

_HANDLERS: dict[str, Handler] = {}
_UNREAD: dict[str, tuple[int, ...]] = {}


def lowers(*names: str, unread: tuple[int, ...] = ()) -> Callable[[Handler], Handler]:
    """Registers a handler for torch operators, named as in the torch dialect without the leading `torch.`.

    `unread` lists operands whose values do not matter: they come as None, and what computes them may be dead.
    """

    def register(handler: Handler) -> Handler:
        for name in names:
            if name in _HANDLERS:
                raise ValueError(f"{name} has two handlers")
            _HANDLERS[name] = handler
            _UNREAD[name] = unread
        return handler

    return register


def is_supported(name: str) -> bool:
    _load_all()
    return name in _HANDLERS


def handler_of(name: str) -> Handler:
    _load_all()
    return _HANDLERS[name]


def read_operands(name: str, operands: list[Any]) -> list[Any]:
    """The operands that the handler of an operator reads, None in place of the others."""
    _load_all()
    unread = _UNREAD.get(name, ())
    return [None if index in unread else operand for index, operand in enumerate(operands)]


def supported_operators() -> list[str]:
    _load_all()
    return sorted(_HANDLERS)


def _load_all() -> None:
    if not _HANDLERS:
        from llmc.frontends.convert import ops

        for module in pkgutil.iter_modules(ops.__path__):
            importlib.import_module(f"{ops.__name__}.{module.name}")
