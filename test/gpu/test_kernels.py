"""Every kernel of kernel_cases.py, compiled here and run on the GPU against float32 or float64 references.

`make gpu-test`. All cases are built and run in one go, each step in a process of its own: a kernel that
hangs or faults takes its process with it. Skipped only where there is no GPU at all.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kernel_cases import all_cases

HERE = Path(__file__).parent
NAMES = [case["name"] for case in all_cases()]


def num_gpus() -> int:
    """Of the driver, without torch: a torch built for the CPU must not look like a machine without a GPU."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    return count.value if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not num_gpus(), reason="this machine has no NVIDIA GPU")]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What run_cases.py found, by case."""
    folder = tmp_path_factory.mktemp("kernels")
    subprocess.run([sys.executable, HERE / "build_cases.py", folder], check=True, timeout=1800)
    # Exits with 1 when a case fails: which one, the tests below say.
    command = [sys.executable, HERE / "run_cases.py", folder, "--out", folder / "rows.json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    assert (folder / "rows.json").is_file(), f"run_cases.py did not get to its end:\n{result.stdout}{result.stderr}"
    found: dict[str, list[dict[str, Any]]] = {}
    for row in json.loads((folder / "rows.json").read_text())["rows"]:
        found.setdefault(row["case"], []).append(row)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_the_reference(rows: dict[str, list[dict[str, Any]]], name: str) -> None:
    assert name in rows, f"{name} was not run"
    assert all(row["passed"] for row in rows[name]), [row for row in rows[name] if not row["passed"]]
