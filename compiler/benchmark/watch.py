"""KV cache, steps and GPU while requests run."""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Stats = Mapping[str, Any]  # of Engine.stats, or of one engine in a server's /stats


class EngineWatch:
    """Peaks and means of an engine's statistics over the looks, and what it did between the first and the last."""

    def __init__(self, read: Callable[[], Stats], interval: float = 0.05) -> None:
        self._read = read
        self._interval = interval
        self._first: Stats = read()
        self._looks: list[Stats] = []
        self._last = 0.0

    def look(self, force: bool = False) -> None:
        """Does nothing within `interval` seconds of the last look."""
        now = time.perf_counter()
        if force or now - self._last >= self._interval:
            self._looks.append(self._read())
            self._last = now

    def summary(self) -> dict[str, Any]:
        self.look(force=True)
        return between(self._first, self._looks)


def between(first: Stats, looks: Sequence[Stats]) -> dict[str, Any]:
    """The figures of the engine from `first` to the last of `looks`; peaks are those of the looks.

    A statistic that is not there (servers tell less than engines) leaves its figures out.
    """
    last = looks[-1]

    def change(name: str) -> Any:
        return last[name] - first[name] if name in last and name in first else None

    def peak(name: str) -> Any:
        return max((look[name] for look in looks if name in look), default=None)

    used = [share for look in looks if (share := _used_share(look)) is not None]
    steps, prompts, generated = change("num_steps"), change("num_prompt_tokens"), change("num_generated_tokens")
    per_step = None
    if None not in (steps, prompts, generated):
        per_step = (prompts + generated) / steps if steps else 0.0
    found = {
        "kv_blocks": first.get("blocks_total"),
        "kv_used_peak": max(used, default=None),
        "kv_used_mean": statistics.fmean(used) if used else None,
        "running_peak": peak("num_running"),
        "waiting_peak": peak("num_waiting"),
        "steps": steps,
        "tokens_per_step": per_step,
        "preemptions": change("num_preemptions"),
        "prompt_tokens_looked_up": change("num_looked_up_tokens"),
        "prompt_tokens_reused": change("num_reused_tokens"),
    }
    return {name: value for name, value in found.items() if value is not None}


def _used_share(look: Stats) -> float | None:
    if "kv_used" in look:
        return float(look["kv_used"])
    return look["blocks_used"] / look["blocks_total"] if look.get("blocks_total") else None


_GPU_FIELDS = {"utilization.gpu": "utilization_percent", "memory.used": "memory_mib", "power.draw": "power_watts"}


@contextlib.contextmanager
def gpu_watch(device: int | None, milliseconds: int = 200) -> Iterator[dict[str, Any]]:
    """Fills the dictionary at the end: mean and peak of the GPU's load, memory and power.

    It stays empty without a device, and where nvidia-smi is missing or fails.
    """
    figures: dict[str, Any] = {}
    smi = shutil.which("nvidia-smi")
    if device is None or smi is None:
        yield figures
        return
    command = [smi, f"--id={_physical(device)}", f"--query-gpu={','.join(_GPU_FIELDS)}"]
    command += ["--format=csv,noheader,nounits", f"--loop-ms={milliseconds}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield figures
    finally:
        process.terminate()
        output, _ = process.communicate()
        figures.update(gpu_figures(output))


def _physical(device: int) -> str:
    """What nvidia-smi calls the device that CUDA numbers `device`."""
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return visible[device] if device < len(visible) else str(device)


def gpu_figures(output: str) -> dict[str, Any]:
    """Mean and peak of each column of nvidia-smi's output; a last line that was cut off is left out."""
    columns: dict[str, list[float]] = {name: [] for name in _GPU_FIELDS.values()}
    for line in output.splitlines():
        values = line.split(",")
        if len(values) != len(columns):
            continue
        for name, value in zip(columns, values, strict=True):
            with contextlib.suppress(ValueError):  # "[N/A]"
                columns[name].append(float(value))
    return {name: {"mean": statistics.fmean(values), "peak": max(values)} for name, values in columns.items() if values}
