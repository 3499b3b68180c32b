"""What a published figure must carry: the command, the commit, the engine and the device.

Imports nothing of llmc unless an engine is named, so that scripts for a bare GPU machine can use it.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


def header(engine: Path | None = None) -> dict[str, Any]:
    """The first rows of a result file.

    engine: folder or archive that was measured; its hash is that of its manifest.
    """
    head: dict[str, Any] = {"command": command(), "llmc_commit": commit(), "device": device()}
    if engine is not None:
        from llmc.compiler.engine import Engine

        opened = Engine(engine)
        head["engine"] = {"sha256": opened.sha256(), "target": opened.manifest["target"]}
    return head


def command() -> str:
    """The command line, from the repository's root on; folders outside it are shortened to their last part."""
    script = Path(sys.argv[0]).resolve()
    shown = [str(script.relative_to(ROOT)) if script.is_relative_to(ROOT) else script.name]
    shown += [Path(word).name if os.sep in word and Path(word).is_absolute() else word for word in sys.argv[1:]]
    return " ".join(["python", *shown])


def commit() -> str:
    """Of this checkout, with `-dirty` where it was changed; a copy without git says it by LLMC_COMMIT."""
    if named := os.environ.get("LLMC_COMMIT"):
        return named
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    result = subprocess.run(git, capture_output=True, text=True, check=False)
    return result.stdout.strip() or "unknown (no git checkout and no LLMC_COMMIT)"


def device() -> dict[str, str]:
    """Name, driver and clocks of the first GPU, else the CPU."""
    if smi := shutil.which("nvidia-smi"):
        fields = ["name", "driver_version", "clocks.sm", "clocks.max.sm", "power.limit"]
        query = [smi, "--id=0", "--format=csv,noheader", f"--query-gpu={','.join(fields)}"]
        result = subprocess.run(query, capture_output=True, text=True, check=False)
        if result.returncode == 0:
            return dict(zip(fields, map(str.strip, result.stdout.split(",")), strict=True))
    return {"name": cpu_name(), "cpus": str(len(os.sched_getaffinity(0)))}


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
