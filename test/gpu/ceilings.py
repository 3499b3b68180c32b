"""Ceilings of the GPU at hand: what every figure in docs/performance.md is divided by.

Medians over several rounds of torch kernels on random data: pure read bandwidth, copy
bandwidth, bf16 and fp8 matrix rates. Run first in any session that reports speed.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable

import torch


def median_seconds(run: Callable[[], object], rounds: int = 7, calls: int = 5) -> float:
    """Median over `rounds` of the mean time of `calls` back-to-back calls."""
    run()
    torch.cuda.synchronize()
    times = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(calls):
            run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / calls / 1e3)
    return statistics.median(times)


def memory_ceilings() -> dict[str, float]:
    """Bytes per second of a pure read (the better of two kernels) and of a copy."""
    data = torch.randn(2_000_000_000, device="cuda", dtype=torch.bfloat16)
    as_float = data.view(torch.float32)
    half = data[: data.numel() // 2]
    other = torch.empty_like(half)
    num_bytes = data.numel() * 2
    reads = [
        num_bytes / median_seconds(lambda: torch.sum(as_float)),
        num_bytes / median_seconds(lambda: torch.max(data.view(torch.int32))),
    ]
    copy = num_bytes / median_seconds(lambda: other.copy_(half))
    return {"read_bytes_per_s": max(reads), "copy_bytes_per_s": copy}


def measure() -> dict[str, float | str]:
    memory = memory_ceilings()
    n = 8192
    a = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
    bf16 = 2 * n**3 / median_seconds(lambda: a @ b.t())
    a8, b8 = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")
    fp8 = 2 * n**3 / median_seconds(lambda: torch._scaled_mm(a8, b8.t(), one, one, out_dtype=torch.bfloat16))
    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        **memory,
        "bf16_flops_per_s": bf16,
        "fp8_flops_per_s": fp8,
    }


if __name__ == "__main__":
    json.dump(measure(), sys.stdout, indent=2)
    print()
