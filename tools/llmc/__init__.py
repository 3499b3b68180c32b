"""llmc: compiles a transformer checkpoint into an engine and serves it."""

import importlib
from typing import Any

__version__ = "0.1.0"
__all__ = ["LLM", "SamplingParams", "__version__", "load_engine"]

# Loaded on first use: compiling needs no runtime, serving needs no compiler.
_LAZY = {
    "LLM": "llmc.runtime",
    "SamplingParams": "llmc.runtime",
    "load_engine": "llmc.runtime",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
