"""Fixtures over the toy engine; a conftest imports them."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.toy_engine import compile_kernels, write_toy


@pytest.fixture(scope="session")
def host_so(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_kernels(tmp_path_factory.mktemp("toy") / "host.so")


@pytest.fixture(scope="session")
def slow_host_so(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For tests that must find an engine at work."""
    return compile_kernels(tmp_path_factory.mktemp("toy") / "host.so", "-DTOY_STEP_MICROSECONDS=5000")


ToyMaker = Callable[..., Path]


@pytest.fixture
def make_toy(tmp_path: Path, host_so: Path) -> ToyMaker:
    def make(name: str = "toy", edit: Callable[[Any, Any], None] | None = None, kernels: Path = host_so) -> Path:
        return write_toy(tmp_path / name, kernels, edit)

    return make


@pytest.fixture
def toy(make_toy: ToyMaker) -> Path:
    return make_toy()


@pytest.fixture
def slow_toy(make_toy: ToyMaker, slow_host_so: Path) -> Path:
    return make_toy("slow", kernels=slow_host_so)


@pytest.fixture
def pack() -> Callable[..., Path]:
    def archive(engine: Path, compression: int = zipfile.ZIP_STORED) -> Path:
        path = engine.with_suffix(".llmc")
        with zipfile.ZipFile(path, "w", compression) as out:
            for part in sorted(p for p in engine.rglob("*") if p.is_file()):
                out.write(part, str(part.relative_to(engine)))
        return path

    return archive
