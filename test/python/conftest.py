"""What holds for all Python tests, and the real model that some of them take."""

from __future__ import annotations

import importlib.util
from pathlib import Path

# The order matters: see AGENTS.md, "two LLVMs".
import mlir.ir  # noqa: F401
import pytest


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct. Without it tests fail, they do not skip."""
    # By its path: tools/ on sys.path would offer tools/llmc, the bare root of the package.
    path = Path(__file__).parents[2] / "tools" / "smollm2.py"
    spec = importlib.util.spec_from_file_location("smollm2", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        return module.find_model()
    except SystemExit as error:
        pytest.fail(f"no SmolLM2: {error}")


@pytest.fixture(scope="session")
def smollm2_host_engine(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled for this CPU, nothing from the cache."""
    from llmc.compiler.cli import main

    engine = tmp_path_factory.mktemp("smollm2") / "engine"
    options = ["--max_seq_len", "2048", "--max_num_tokens", "512", "--quiet", "--no_cache"]
    assert main(["compile", str(smollm2), "-o", str(engine), *options]) == 0
    return engine
