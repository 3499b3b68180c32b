"""`llmc serve` as a process of its own."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


def start(*options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "llmc", "serve", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def url_of(process: subprocess.Popen[str]) -> str:
    line = process.stdout.readline()
    found = re.search(r"Serving .* at (\S+)/v1", line)
    assert found, line + process.communicate(timeout=60)[1]
    return found[1]


@contextlib.contextmanager
def serving(engine: Path | str, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its address; it must end well, without a traceback in its log."""
    process = start(str(engine), *options, "--port", "0", "--log_level", "error")
    try:
        yield process, url_of(process)
    finally:
        process.terminate()
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == 0
    assert "Traceback" not in errors, errors
