"""Prometheus' own checker on /metrics; it is taken from PATH or out of Debian's package."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from support.client_venv import ENVIRONMENTS
from support.serve_process import serving

pytestmark = [pytest.mark.clients, pytest.mark.slow]


@pytest.fixture
def promtool() -> Path:
    if found := shutil.which("promtool"):
        return Path(found)
    folder = ENVIRONMENTS / "promtool"
    program = folder / "usr" / "bin" / "promtool"
    if not program.is_file():
        assert shutil.which("apt-get"), "promtool is not in PATH, and there is no apt-get to fetch it with"
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "prometheus"], cwd=folder, check=True)
        [package] = folder.glob("prometheus_*.deb")
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    return program


def test_metrics(promtool: Path, toy: Path):
    """Before the first request and after some."""
    with serving(f"a={toy}", f"b={toy}") as (_, url):
        for prompts in (0, 3):
            for i in range(prompts):
                body = {"model": "ab"[i % 2], "prompt": "hello", "max_tokens": 5}
                assert httpx.post(f"{url}/v1/completions", json=body).status_code == 200
            text = httpx.get(f"{url}/metrics").text
            done = subprocess.run(
                [promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0 and not done.stdout + done.stderr, done.stdout + done.stderr
