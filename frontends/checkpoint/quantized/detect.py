"""Finds out how a Hugging Face folder is quantized."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from llmc.frontends.checkpoint.quantized.awq import Awq
from llmc.frontends.checkpoint.quantized.compressed_tensors import CompressedTensors
from llmc.frontends.checkpoint.quantized.float8 import Float8, ModelOpt
from llmc.frontends.checkpoint.quantized.gptq import Gptq
from llmc.frontends.checkpoint.quantized.method import Method
from llmc.frontends.errors import FrontendError

#: `quant_method` of a quantization configuration -> its reader.
_METHODS: dict[str, type[Any]] = {
    "awq": Awq,
    "compressed-tensors": CompressedTensors,
    "fp8": Float8,
    "gptq": Gptq,
    "modelopt": ModelOpt,
}
#: Configurations beside config.json, by file name: what ModelOpt and AutoGPTQ write there.
_MODELOPT_FILE = "hf_quant_config.json"
_GPTQ_FILE = "quantize_config.json"


def find_method(folder: Path) -> Method | None:
    """The quantization of a folder; None: it has none. Raises FrontendError for one that is not read."""
    fields = _read(folder / "config.json").get("quantization_config")
    if fields is None:
        return _beside(folder)
    where = folder / "config.json"
    if not isinstance(fields, dict):
        raise FrontendError(f"{where}: quantization_config must be an object, found {fields!r}")
    name = str(fields.get("quant_method", "unknown"))
    if name == "unknown" and "quant_algo" in fields:
        name = "modelopt"
    if name not in _METHODS:
        raise FrontendError(
            f"{where}: the checkpoint is quantized by method '{name}', which llmc does not read: expected one of "
            f"{', '.join(sorted(_METHODS))}; or take the unquantized model and --qformat"
        )
    return _METHODS[name](fields)


def _beside(folder: Path) -> Method | None:
    if (file := folder / _MODELOPT_FILE).is_file():
        fields = _read(file).get("quantization")
        if not isinstance(fields, dict):
            raise FrontendError(f"{file}: expected an object 'quantization', found {fields!r}")
        return ModelOpt(fields)
    if (file := folder / _GPTQ_FILE).is_file():
        return Gptq(_read(file))
    return None


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FrontendError(f"unreadable {file}: {error}") from None
    if not isinstance(content, dict):
        raise FrontendError(f"{file}: expected an object, found {type(content).__name__}")
    return content
