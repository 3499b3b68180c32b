"""A session with the command-line tool `llm`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

QUESTION = "What is the capital of France?"
MODELS = """\
- model_id: llmc
  model_name: smollm2
  api_base: {url}
  api_key_name: none
  supports_schema: true
  supports_tools: true
- model_id: llmc-text
  model_name: smollm2
  api_base: {url}
  completion: true
"""


@pytest.fixture
def llm(base_url: str, tmp_path: Path) -> Callable[..., str]:
    """Runs `llm ...`, configured in a folder of its own; returns what it prints."""
    (tmp_path / "extra-openai-models.yaml").write_text(MODELS.format(url=base_url), encoding="utf-8")
    environment = os.environ | {"LLM_USER_PATH": str(tmp_path), "LLM_LOAD_PLUGINS": "", "OPENAI_API_KEY": "none"}

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "llm", *words]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_prompts(llm):
    ask = ["-m", "llmc", "-o", "temperature", "0", "-o", "max_tokens", "30"]
    streamed = llm(*ask, QUESTION)
    assert "Paris" in streamed
    assert llm(*ask, "--no-stream", QUESTION) == streamed
    assert llm(*ask, "--system", "You are a pirate.", QUESTION).strip()
    [last, *_] = json.loads(llm("logs", "list", "--json", "-n", "1"))
    assert last["model"] == "llmc" and last["output_tokens"] > 0


def test_a_schema(llm):
    # Closed and of bounded length: a model this small would go on for ever.
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 20},
            "legs": {"type": "integer", "minimum": 0, "maximum": 9},
        },
        "required": ["name", "legs"],
        "additionalProperties": False,
    }
    text = llm("-m", "llmc", "-o", "temperature", "0", "--schema", json.dumps(schema), "Describe a dog.")
    found = json.loads(text)
    assert set(found) == {"name", "legs"} and 0 <= found["legs"] <= 9


def test_text_completions(llm):
    assert llm("-m", "llmc-text", "-o", "temperature", "0", "-o", "max_tokens", "8", "Once upon a time").strip()
