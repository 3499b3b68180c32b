"""Picks the reader for a path."""

from __future__ import annotations

from pathlib import Path

from llmc.frontends.checkpoint.base import Checkpoint
from llmc.frontends.errors import FrontendError


def open_checkpoint(path: str | Path, dequantize: bool = False) -> Checkpoint:
    """Opens a Hugging Face folder, a .gguf file, or a folder that holds exactly one .gguf file.

    dequantize: layers of a quantized folder may be read as values. The blocks of .gguf files always are.
    """
    from llmc.frontends.checkpoint.gguf import GgufCheckpoint

    path = Path(path)
    if not path.exists():
        raise FrontendError(f"no model at {path}: expected a Hugging Face folder or a .gguf file")
    if path.is_file():
        if path.suffix == ".gguf":
            return GgufCheckpoint(path)
        raise FrontendError(f"{path} is neither a Hugging Face folder nor a .gguf file")
    if (path / "config.json").is_file():
        return _open_folder(path, dequantize)
    candidates = sorted(path.glob("*.gguf"))
    if len(candidates) == 1:
        return GgufCheckpoint(candidates[0])
    if candidates:
        raise FrontendError(f"{path} holds {len(candidates)} .gguf files: name one of them")
    raise FrontendError(f"{path} has no config.json and no .gguf file")


def _open_folder(path: Path, dequantize: bool) -> Checkpoint:
    from llmc.frontends.checkpoint.huggingface import HuggingFaceCheckpoint
    from llmc.frontends.checkpoint.quantized.checkpoint import QuantizedCheckpoint
    from llmc.frontends.checkpoint.quantized.detect import find_method

    files = HuggingFaceCheckpoint(path)
    method = find_method(path)
    return files if method is None else QuantizedCheckpoint(files, method, dequantize)
