"""Clients of the server that are too heavy for everyday tests, each in a virtual environment of its own.

The pins lie in test/clients/python/NAME.txt, the environments in build/clients. What the environment of the
tests has already (torch, transformers) is shared with them: pip sees it as installed and takes another version
only where a client needs one.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PINS = ROOT / "test" / "clients" / "python"
ENVIRONMENTS = ROOT / "build" / "clients"

ClientVenvs = Callable[[str], Path]


def _installed(name: str) -> Path:
    """The folder of the environment with the client `name`; made again when its pins have changed."""
    pins = PINS / f"{name}.txt"
    key = hashlib.sha256(pins.read_bytes() + sys.version.encode()).hexdigest()
    folder = ENVIRONMENTS / name
    mark = folder / "complete"
    if mark.is_file() and mark.read_text(encoding="utf-8") == key:
        return folder
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    [packages] = folder.glob("lib/python3.*/site-packages")
    (packages / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    done = subprocess.run([*pip, "install", "-r", pins], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    mark.write_text(key, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def client_venvs() -> ClientVenvs:
    return _installed


def offline_environment(**more: str) -> dict[str, str]:
    """For clients that would ask the network for updates, or send what they saw."""
    quiet = {"DO_NOT_TRACK": "1", "ANONYMIZED_TELEMETRY": "False", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return kept | quiet | {"OPENAI_API_KEY": "none"} | more
