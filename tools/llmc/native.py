"""Finds the compiled parts of the package, and runs its binaries."""

import importlib.util
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
    raise FileNotFoundError(f"llmc was installed without {relative}; looked for {', '.join(map(str, tried))}")


def _library_dirs() -> list[str]:
    """Where libMLIR.so and libLLVM.so are."""
    specs = [importlib.util.find_spec(name) for name in ("mlir", "llvm")]
    roots = [root for spec in specs if spec for root in spec.submodule_search_locations or ()]
    return [str(Path(root) / "lib") for root in roots]


def _exec_mlir_tool(tool: str) -> None:
    path = str(native_path(f"bin/{tool}"))
    # The binary's own RPATH serves when llmc lies beside `mlir`; this also
    # serves an environment stacked on the one that has `mlir`.
    search = [*filter(None, [os.environ.get("LD_LIBRARY_PATH")]), *_library_dirs()]
    environment = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(search)}
    os.execve(path, [path, *sys.argv[1:]], environment)


def llmc_opt() -> None:
    """The script `llmc-opt`."""
    _exec_mlir_tool("llmc-opt")


def llmc_lsp_server() -> None:
    """The script `llmc-lsp-server`."""
    _exec_mlir_tool("llmc-lsp-server")


def llmc_run() -> None:
    """The script `llmc-run`: the C++ program itself, which needs no Python once it is found."""
    path = str(native_path("bin/llmc-run"))
    os.execv(path, [path, *sys.argv[1:]])
