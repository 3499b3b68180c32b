"""schemathesis asks whatever the OpenAPI document allows, and much that it does not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.client_venv import ClientVenvs
from support.serve_process import serving

pytestmark = [pytest.mark.clients, pytest.mark.slow]

# A request may fit its schema and still be refused: two fields exclude each other, a prompt is too long.
EXCLUDED = "positive_data_acceptance"


@pytest.mark.parametrize("seed", [1, 2])
def test_no_answer_but_those_described(client_venvs: ClientVenvs, toy: Path, tmp_path: Path, seed: int):
    venv = client_venvs("schemathesis")
    with serving(f"toy={toy}", "--tool_call_parser", "hermes") as (_, url):
        done = subprocess.run(
            [venv / "bin" / "schemathesis", "run", f"{url}/openapi.json", "--max-examples", "100", "--no-color",
             "--exclude-checks", EXCLUDED, "--seed", str(seed)],
            capture_output=True, text=True, cwd=tmp_path, timeout=900, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
