"""A server of a real model, for clients as their users have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.client_venv import client_venvs  # noqa: F401
from support.serve_process import serving
from support.toy_fixtures import host_so, make_toy, toy  # noqa: F401

MODEL = "smollm2"


@pytest.fixture(scope="session")
def smollm2_server(smollm2_host_engine: Path) -> Iterator[str]:
    """The address of `llmc serve` with SmolLM2. Its chat template knows no tools: the form is named."""
    with serving(f"{MODEL}={smollm2_host_engine}", "--tool_call_parser", "hermes") as (_, url):
        yield url


@pytest.fixture
def base_url(smollm2_server: str) -> str:
    """What clients call base_url or api_base."""
    return f"{smollm2_server}/v1"
