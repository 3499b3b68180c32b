"""What llmc compiles for, and what each target can do."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import hashlib
import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING

from llmc.codegen.chips import CHIPS
from llmc.errors import TargetError

if TYPE_CHECKING:
    from llmc.codegen.chips import Chip


@dataclasses.dataclass(frozen=True)
class Target:
    """One value of `--target`, with everything that the phases need to know about it.

    name:               as typed; recorded for messages ("host", "x86-64-v3", "sm_90").
    kind:               "cpu" or "cuda": which code generator runs.
    arch:               manifest `target.arch`: "x86-64", "aarch64", "sm_90a".
    features:           CPU features that the code may use; the loader checks each.
    activation_dtypes:  what GEMM inputs may be; the first is the default.
    weight_dtypes:      storage types of weights; the first is the default.
    kv_cache_dtypes:    element types of the KV cache; the first is the default.
    block_sizes:        tokens of a KV block that the kernels take; the first is the default.
    chip:               what code generation knows of the GPU; None on a CPU.
    schedules:          file of measured schedules; None: those that llmc ships.
    glu_block:          rows of gate and of up that a merged projection interleaves at a time.
    samples_on_device:  whether the step ends with the next tokens, so that logits stay where they are.
    """

    name: str
    kind: str
    arch: str
    features: tuple[str, ...]
    activation_dtypes: tuple[str, ...]
    weight_dtypes: tuple[str, ...]
    kv_cache_dtypes: tuple[str, ...]
    block_sizes: tuple[int, ...]
    chip: Chip | None = None
    schedules: Path | None = None
    glu_block: int = 1
    samples_on_device: bool = False
    summary: str = ""

    @property
    def is_cpu(self) -> bool:
        return self.kind == "cpu"

    @property
    def runtime_name(self) -> str:
        """Manifest `target.name`: which backend of the runtime loads the engine."""
        return "host" if self.is_cpu else self.name

    @property
    def fingerprint(self) -> str:
        """Everything about the target that decides about code, as text for cache keys."""
        text = f"{self.runtime_name} {self.arch} {','.join(self.features)} {self.chip}"
        return text if self.schedules is None else f"{text} {hashlib.sha256(self.schedules.read_bytes()).hexdigest()}"

    def with_kernels(self, kernels: str) -> Target:
        """The same target with "portable" kernels, those of every GPU, or "auto", the best it has.

        Raises TargetError where there is no such choice.
        """
        if kernels == "auto":
            return self
        if kernels != "portable" or self.chip is None:
            choices = "auto" if self.chip is None else "auto or portable"
            raise TargetError(f"--kernels {kernels}: target {self.name} takes {choices}")
        return dataclasses.replace(self, chip=dataclasses.replace(self.chip, hopper=False))


# Features by level, as LLVM and the loader spell them. AMX is never listed: some virtual machines
# announce it in CPUID and then raise SIGILL.
_V2 = ("cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_V4 = (*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
_DETECTED = (*_V4, "avx512bf16", "avx512vnni")

# Where /proc/cpuinfo spells a feature in another way than LLVM.
_CPUINFO_NAMES = {
    "sse3": "pni", "sse4.1": "sse4_1", "sse4.2": "sse4_2", "bmi": "bmi1", "lzcnt": "abm",
    "avx512bf16": "avx512_bf16", "avx512vnni": "avx512_vnni",
}  # fmt: skip


def _cpu(name: str, arch: str, features: tuple[str, ...], summary: str) -> Target:
    return Target(
        name=name,
        kind="cpu",
        arch=arch,
        features=tuple(sorted(features)),
        activation_dtypes=("f32",),
        weight_dtypes=("bf16", "f16", "f32"),
        kv_cache_dtypes=("f32",),
        block_sizes=(64, 16, 32, 128),
        summary=summary,
    )


def _gpu(name: str, summary: str) -> Target:
    chip = CHIPS[name]
    return Target(
        name=name,
        kind="cuda",
        arch=chip.arch,
        features=(),
        activation_dtypes=("bf16", "f16"),
        weight_dtypes=("bf16", "f16"),
        kv_cache_dtypes=("bf16", "f16"),
        block_sizes=(64,),
        chip=chip,
        glu_block=8,
        samples_on_device=True,
        summary=summary,
    )


_NAMED = {
    target.name: target
    for target in (
        _cpu("x86-64-v3", "x86-64", _V3, "any x86-64 CPU with AVX2 and FMA"),
        _cpu("x86-64-v4", "x86-64", _V4, "any x86-64 CPU with AVX-512"),
        _gpu("sm_80", "NVIDIA Ampere: A100, A30"),
        _gpu("sm_86", "NVIDIA Ampere: A10, A40, RTX 30"),
        _gpu("sm_89", "NVIDIA Ada: L4, L40S, RTX 40"),
        _gpu("sm_90", "NVIDIA Hopper: H100, H200"),
        _gpu("sm_100", "NVIDIA Blackwell: B200"),
        _gpu("sm_120", "NVIDIA Blackwell: RTX 50, RTX PRO"),
    )
}
_HOST_SUMMARY = "the CPU of this machine"


def known_targets() -> dict[str, str]:
    """Every value of `--target` with one line about it."""
    return {"host": _HOST_SUMMARY} | {name: target.summary for name, target in _NAMED.items()}


def find_target(name: str) -> Target:
    """The target called `name`. Raises TargetError with the known ones when there is none."""
    if name == "host":
        return host_target()
    if name in _NAMED:
        return _NAMED[name]
    raise TargetError(f"unknown target '{name}'{_hint(name)}: expected one of {', '.join(known_targets())}")


def _hint(name: str) -> str:
    """What to do about a target that is not there."""
    gpu = re.fullmatch(r"sm_(\d+)(\d)[a-z]?", name)
    if gpu is None:
        close = difflib.get_close_matches(name, known_targets(), n=1, cutoff=0.5)
    elif int(gpu[1]) < 8:
        return " (kernels need what came with sm_80: bf16 tensor cores and asynchronous copies)"
    else:
        # Code of an architecture runs on the later ones of its generation.
        close = [own for own in CHIPS if own[:-1] == f"sm_{gpu[1]}" and own[-1] <= gpu[2]][-1:]
    return f" (did you mean {close[0]}?)" if close else ""


@functools.cache
def host_target() -> Target:
    """The machine's own CPU: its architecture and those features that the host kernels use."""
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64"):
        present = _cpuinfo_flags(Path("/proc/cpuinfo"))
        features = tuple(f for f in _DETECTED if _CPUINFO_NAMES.get(f, f) in present)
        return _cpu("host", "x86-64", features, _HOST_SUMMARY)
    if machine in ("aarch64", "arm64"):
        return _cpu("host", "aarch64", ("neon",), _HOST_SUMMARY)
    raise TargetError(
        f"this machine's CPU '{machine}' is not one that llmc compiles for (x86-64, aarch64); "
        f"name a target: {', '.join(_NAMED)}"
    )


def _cpuinfo_flags(path: Path) -> frozenset[str]:
    """The flags of the first CPU; what a kernel has not enabled is absent there."""
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    for line in text.splitlines():
        if line.startswith("flags"):
            return frozenset(line.partition(":")[2].split())
    return frozenset()
