"""Exceptions of the runtime. Each message says what was expected, found, and what to do."""

from __future__ import annotations


class EngineError(RuntimeError):
    """Base of all errors that the C++ runtime reports."""


class EngineNotFoundError(EngineError, FileNotFoundError):
    """There is no engine at the path, or a file of it cannot be read."""


class BadEngineError(EngineError):
    """The engine is damaged, truncated or inconsistent."""


class UnsupportedEngineError(EngineError):
    """The engine has another format version, architecture or CPU features."""


class StrippedEngineError(EngineError):
    """The engine has no weights; `llmc refit` binds them."""


class EngineOutOfMemoryError(EngineError, MemoryError):
    """Weights, arena and KV pool do not fit; happens only while loading."""


class RequestRefusedError(EngineError, ValueError):
    """The request can never run on this engine; the message has the numbers."""


class InvalidArgumentError(EngineError, ValueError):
    """An argument is out of range."""


class DeviceError(EngineError):
    """The device or its driver failed."""


# The key is llmc_status_name().
_BY_STATUS: dict[str, type[EngineError]] = {
    "invalid argument": InvalidArgumentError,
    "not found": EngineNotFoundError,
    "bad engine": BadEngineError,
    "unsupported": UnsupportedEngineError,
    "stripped engine": StrippedEngineError,
    "out of memory": EngineOutOfMemoryError,
    "refused": RequestRefusedError,
    "device error": DeviceError,
}


def make_error(status: str, message: str) -> EngineError:
    """Called by the extension for every failed call."""
    return _BY_STATUS.get(status, EngineError)(message)
