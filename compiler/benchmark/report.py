"""The JSON file of a benchmark: what was run, on what, and its figures."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import llmc
from llmc.errors import CompileError, OptionError

FORMAT = "llmc-bench/1"

Report = dict[str, Any]
Run = dict[str, Any]  # {"name", "settings", "figures", ...}


def report(kind: str, engine: Path | None = None, **more: Any) -> Report:
    """A report without runs. `engine`: what was measured; its hash is that of its manifest."""
    found: Report = {
        "format": FORMAT,
        "kind": kind,
        "command": ["llmc", *map(_without_folder, sys.argv[1:])],
        "llmc": llmc.__version__,
        "device": device(),
    }
    if engine is not None:
        from llmc.compiler.engine import Engine

        opened = Engine(engine)
        manifest = opened.manifest
        found["engine"] = {"sha256": opened.sha256(), "target": manifest["target"], "limits": manifest["limits"]}
    return found | more | {"runs": []}


def _without_folder(word: str) -> str:
    """Files by their names: where they lie says nothing about the figures."""
    return Path(word).name if word.startswith(os.sep) else word


def device() -> dict[str, str]:
    """Name, driver and clocks of the first GPU, else the CPU."""
    if smi := shutil.which("nvidia-smi"):
        fields = ["name", "driver_version", "clocks.sm", "clocks.max.sm", "power.limit"]
        query = [smi, "--id=0", "--format=csv,noheader", f"--query-gpu={','.join(fields)}"]
        result = subprocess.run(query, capture_output=True, text=True, check=False)
        values = [value.strip() for value in result.stdout.split(",")]
        if result.returncode == 0 and len(values) == len(fields):
            return dict(zip(fields, values, strict=True))
    return {"name": _cpu_name(), "cpus": str(os.cpu_count())}


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Raises CompileError where it cannot be written."""
    write_text(path, json.dumps(content, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CompileError(f"cannot write {path}: {error.strerror}") from None


def read_report(path: Path) -> Report:
    """A file of `--json`. Raises OptionError for anything else."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise OptionError(f"{path}: expected the JSON file of an `llmc bench --json`, found {error}") from None
    runs = found.get("runs") if isinstance(found, dict) else None
    named = isinstance(runs, list) and all(isinstance(run, dict) and "name" in run for run in runs)
    if not isinstance(found, dict) or found.get("format") != FORMAT or not named:
        what = found.get("format") if isinstance(found, dict) else type(found).__name__
        raise OptionError(f"{path}: expected a report of format {FORMAT} (`llmc bench ... --json`), found {what!r}")
    return found
