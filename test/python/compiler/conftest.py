"""Fixtures of the tests of the driver."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.engine_files import DictSource, write_small_engine


@pytest.fixture
def small_source() -> DictSource:
    return DictSource({"w": np.arange(24, dtype=np.float32).reshape(6, 4)})


@pytest.fixture
def small_engine(tmp_path: Path, small_source: DictSource) -> Path:
    return write_small_engine(tmp_path / "small", small_source)


@pytest.fixture
def stripped_engine(tmp_path: Path) -> Path:
    return write_small_engine(tmp_path / "stripped")
