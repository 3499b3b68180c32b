"""Source locations: each op of a kernel carries the generator's file and line."""

from __future__ import annotations

import os
import sys

from mlir import ir

_BUILDER = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(os.path.dirname(_BUILDER))


def here() -> ir.Location:
    """The line of the generator that called into the builder.

    The path is relative to the package, so that the same kernel is the same text on
    every machine.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_BUILDER):
        frame = frame.f_back
    path = os.path.relpath(frame.f_code.co_filename, _PACKAGE)
    return ir.Location.file(path, frame.f_lineno, 0)
