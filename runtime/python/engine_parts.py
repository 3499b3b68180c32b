"""Reads small parts of an engine, be it a folder or a .llmc archive."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from llmc.runtime.errors import BadEngineError


def read_part(engine: Path, name: str) -> bytes | None:
    """The bytes of a part; None when the engine does not have it."""
    if engine.is_dir():
        path = engine / name
        return path.read_bytes() if path.is_file() else None
    with zipfile.ZipFile(engine) as archive:
        try:
            return archive.read(name)
        except KeyError:
            return None


def read_json_part(engine: Path, name: str) -> dict[str, Any]:
    """A JSON part; an empty dictionary when the engine does not have it."""
    data = read_part(engine, name)
    if data is None:
        return {}
    try:
        value = json.loads(data)
    except ValueError as error:
        raise BadEngineError(f"{name}: not valid JSON ({error}); recompile the engine") from error
    if not isinstance(value, dict):
        raise BadEngineError(f"{name}: expected an object; recompile the engine")
    return value
