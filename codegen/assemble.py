"""PTX to cubin with ptxas, and the gate on what ptxas says.

ptxas reports the worst things that can happen to a tensor-core kernel as mere information: C7510 to
C7519 (wgmma serialized), C7508 (setmaxnreg ignored), spills, stack frames. Here each is an error.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from llmc.errors import InternalError, ToolError

#: Oldest ptxas that knows all of the PTX that the kernels use (PTX ISA 8.3).
MIN_VERSION = (12, 3)
_INSTALL = "install it with `pip install nvidia-cuda-nvcc==13.0.88`, or a CUDA toolkit"


@dataclasses.dataclass(frozen=True)
class Ptxas:
    """A ptxas program and its version, e.g. (13, 0)."""

    path: Path
    version: tuple[int, int]

    @property
    def fingerprint(self) -> str:
        """For cache keys: another ptxas makes other code."""
        return f"ptxas {self.version[0]}.{self.version[1]}"


@dataclasses.dataclass(frozen=True)
class Usage:
    """What one entry takes, as ptxas counts it (bytes are static ones, known at assembly)."""

    registers: int
    shared_bytes: int = 0
    stack_bytes: int = 0
    spill_bytes: int = 0
    barriers: int = 0


@dataclasses.dataclass(frozen=True)
class Assembly:
    """A cubin and the usage of each of its entries."""

    cubin: bytes
    usage: dict[str, Usage]


@functools.cache
def find_ptxas() -> Ptxas:
    """The first ptxas of PATH, CUDA_HOME and the PyPI package that is new enough.

    Raises ToolError that says where it looked.
    """
    found = []
    for path in _candidates():
        version = _version(path)
        if version is not None and version >= MIN_VERSION:
            return Ptxas(path, version)
        found.append(f"{path} ({_dotted(version) if version else 'not runnable'})")
    if found:
        raise ToolError(f"ptxas {_dotted(MIN_VERSION)} or newer is needed, found {', '.join(found)}: {_INSTALL}")
    raise ToolError("ptxas not found (looked in PATH, CUDA_HOME and the Python package nvidia-cuda-nvcc): " + _INSTALL)


def assemble(ptx: str, arch: str, *, allow_stack: bool = False) -> Assembly:
    """Assembles PTX for `arch` ("sm_90a").

    Raises InternalError when ptxas rejects it, or accepts it with a C75xx message, a spill or (unless
    `allow_stack`) a stack frame; the PTX is kept then and named in the message.
    """
    ptxas = find_ptxas()
    with tempfile.TemporaryDirectory(prefix="llmc-ptxas-") as folder:
        source, target = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, encoding="utf-8")
        command = [str(ptxas.path), f"-arch={arch}", "-v", "-O3", str(source), "-o", str(target)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        log = result.stdout + result.stderr
        if result.returncode != 0:
            raise _rejected(ptx, arch, ptxas, "rejects a kernel", log)
        usage = parse_usage(log)
        if faults := find_faults(log, usage, allow_stack):
            raise _rejected(ptx, arch, ptxas, "makes a slow kernel", "\n".join(faults))
        return Assembly(target.read_bytes(), usage)


_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)'|Function properties for (?P<other>\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(?:, used (\d+) barriers)?")
_SHARED = re.compile(r"(\d+) bytes smem")
_PERFORMANCE = re.compile(r"\(?C75\d\d\)?")


def parse_usage(log: str) -> dict[str, Usage]:
    """Usage by entry, out of what `ptxas -v` prints."""
    usage: dict[str, Usage] = {}
    name, stack, spill = "", 0, 0
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            name = match["name"] or match["other"]
        if match := _STACK.search(line):
            stack, spill = int(match[1]), int(match[2]) + int(match[3])
        if match := _USED.search(line):
            shared = _SHARED.search(line)
            usage[name] = Usage(
                registers=int(match[1]),
                barriers=int(match[2] or 0),
                shared_bytes=int(shared[1]) if shared else 0,
                stack_bytes=stack,
                spill_bytes=spill,
            )
            stack = spill = 0
    return usage


def find_faults(log: str, usage: dict[str, Usage], allow_stack: bool = False) -> list[str]:
    """What makes a kernel slow without making it wrong, one line each."""
    faults = [line.strip() for line in log.splitlines() if _PERFORMANCE.search(line)]
    for name, used in usage.items():
        if used.spill_bytes:
            faults.append(f"{name}: {used.spill_bytes} bytes of spills at {used.registers} registers")
        if used.stack_bytes and not allow_stack:
            faults.append(f"{name}: a stack frame of {used.stack_bytes} bytes")
    return faults


def _rejected(ptx: str, arch: str, ptxas: Ptxas, what: str, details: str) -> InternalError:
    handle, name = tempfile.mkstemp(prefix="llmc-rejected-", suffix=".ptx")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(ptx)
    lines = details.strip().splitlines()[:20]
    return InternalError(
        f"{ptxas.fingerprint} {what}:\n" + "\n".join(lines) + f"\nreplay it with: ptxas -arch={arch} -v {name}",
        Path(name),
    )


def _candidates() -> Iterator[Path]:
    """Every ptxas in the order of preference."""
    if on_path := shutil.which("ptxas"):
        yield Path(on_path)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if root := os.environ.get(variable):
            path = Path(root) / "bin" / "ptxas"
            if path.is_file():
                yield path
    # nvidia-cuda-nvcc puts it into nvidia/cu13/bin, its predecessors into nvidia/cuda_nvcc/bin.
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or []) if spec else []:
        yield from sorted(Path(root).glob("*/bin/ptxas"), reverse=True)


def _version(path: Path) -> tuple[int, int] | None:
    try:
        result = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"release (\d+)\.(\d+)", result.stdout)
    return (int(match[1]), int(match[2])) if match else None


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
