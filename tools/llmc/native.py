"""Finds the compiled parts of the package, and runs its binaries."""

import os
import sys
from pathlib import Path

import llmc


def native_path(relative: str) -> Path:
    """Path of a compiled file of the package, e.g. `bin/llmc-opt`.

    An editable install spreads the package over two folders, so every entry
    of its path is tried.
    """
    tried = [Path(root) / relative for root in llmc.__path__]
    for path in tried:
        if path.exists():
            return path
    raise FileNotFoundError(
        f"llmc was installed without {relative}; looked for {', '.join(map(str, tried))}"
    )


def _exec(tool: str) -> None:
    path = str(native_path(f"bin/{tool}"))
    os.execv(path, [path, *sys.argv[1:]])


def llmc_opt() -> None:
    """The script `llmc-opt`."""
    _exec("llmc-opt")


def llmc_lsp_server() -> None:
    """The script `llmc-lsp-server`."""
    _exec("llmc-lsp-server")
