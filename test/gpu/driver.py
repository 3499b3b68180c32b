"""The launcher of `llmc tune`, for the scripts of this folder, which run on machines without an installed llmc."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_NAME = Path("compiler", "tuning", "cuda.py")
_SOURCE = next(root / _NAME for root in Path(__file__).resolve().parents if (root / _NAME).is_file())
_SPEC = importlib.util.spec_from_file_location("llmc_tuning_cuda", _SOURCE)
assert _SPEC is not None and _SPEC.loader is not None
_MODULE = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = _MODULE
_SPEC.loader.exec_module(_MODULE)

Kernel, graph_of, interleaved = _MODULE.Kernel, _MODULE.graph_of, _MODULE.interleaved
