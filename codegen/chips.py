"""The GPUs that kernels are generated for: what schedules must fit, and the rates that costs are counted in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Chip:
    """One architecture.

    arch:                 what ptxas assembles for: "sm_80"; "sm_90a" has features of its own.
    ptx_features:         PTX version for LLVM: the oldest that knows the architecture and all that is used.
    shared_bytes:         of one block.
    multiprocessors:      of the whole chip, of a usual GPU of this architecture.
    hopper:               whether the kernels of codegen/sm90 (wgmma, TMA) run; else those of codegen/sm80.

    What kernels reached on it (docs/performance.md), which the schedules of codegen/sm90 are chosen by; 0 where
    nobody measured:

    memory_bytes_per_us:  read from the device's memory.
    cache_bytes_per_us:   into one multiprocessor from the L2.
    matrix_ops_per_us:    of one multiprocessor, 16-bit operands (a multiply and an add are two).
    """

    arch: str
    ptx_features: str
    shared_bytes: int
    multiprocessors: int
    hopper: bool = False
    memory_bytes_per_us: float = 0.0
    cache_bytes_per_us: float = 0.0
    matrix_ops_per_us: float = 0.0


CHIPS = {
    "sm_80": Chip("sm_80", "+ptx83", 166912, 108),
    "sm_86": Chip("sm_86", "+ptx83", 101376, 84),
    "sm_89": Chip("sm_89", "+ptx83", 101376, 128),
    "sm_90": Chip(
        "sm_90a",
        "+ptx83",
        232448,
        132,
        hopper=True,
        memory_bytes_per_us=4.2e6,
        cache_bytes_per_us=75e3,
        matrix_ops_per_us=6.4e6,
    ),
    "sm_100": Chip("sm_100", "+ptx87", 232448, 148),
    "sm_120": Chip("sm_120", "+ptx87", 101376, 170),
}
"""By the name of the target."""

HOPPER = CHIPS["sm_90"]
"""An H200, where no chip is named."""
