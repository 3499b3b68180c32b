"""Exceptions of the frontends, the code generators and the compiler.

Every message is one sentence or a short list that says what was expected, what was found and what
to do. The command line prints it without a traceback and exits with `exit_code`: 2 when the user
can fix the input, 1 when llmc itself is at fault.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


class CompileError(Exception):
    """Base of everything that llmc raises on purpose."""

    exit_code = 2


class OptionError(CompileError):
    """An option has a value outside its range, or two options contradict each other."""


class TargetError(CompileError):
    """Unknown target, or a request that the target cannot fulfil."""


class ModelError(CompileError):
    """The checkpoint is missing, damaged, contradictory or not supported."""


class EngineError(CompileError):
    """The engine is damaged, stripped, of another version or not an engine."""


class OutputError(CompileError):
    """The output cannot be written: it exists, is not writable, or the disk is full."""


class ToolError(CompileError):
    """A program that the compiler runs is missing, too old or failed."""


class InternalError(CompileError):
    """A bug in llmc; `reproducer` is the file that replays it, where there is one."""

    exit_code = 1

    def __init__(self, message: str, reproducer: Path | None = None):
        super().__init__(message)
        self.reproducer = reproducer


def bulleted(items: Iterable[object], limit: int = 20) -> str:
    """One indented line per item; what exceeds `limit` is counted."""
    rows = [str(item) for item in items]
    lines = [f"  {row}" for row in rows[:limit]]
    if len(rows) > limit:
        lines.append(f"  ... and {len(rows) - limit} more")
    return "\n".join(lines)


def first_line(error: BaseException) -> str:
    """The first line of what an exception says, or its name where it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
