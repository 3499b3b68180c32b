"""Requests from a file of JSON lines in the layout of trtllm-bench.

A line is {"task_id": ..., "prompt": TEXT, "output_tokens": N}, or with "input_ids": [ID, ...] instead of the
prompt ("logits" in files made for its older versions).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llmc.compiler.benchmark.workload import WorkItem
from llmc.errors import OptionError

_LAYOUT = '{"task_id": 0, "prompt": "..." or "input_ids": [...], "output_tokens": 128}'
_ID_FIELDS = ("input_ids", "logits")


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, object) of each line that is not empty. Raises OptionError for what is no object."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield f"{path}:{number}", _object(f"{path}:{number}", line)
    except OSError as error:
        raise OptionError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise OptionError(
            f"{path}: expected lines of JSON in UTF-8, found {error.reason} at byte {error.start}"
        ) from None


def _object(place: str, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise OptionError(f"{place}: expected a line of JSON, found {error.msg} at column {error.colno}") from None
    if not isinstance(found, dict):
        raise OptionError(f"{place}: expected a JSON object, found {type(found).__name__}")
    return found


def read_dataset(path: Path, limit: int | None = None) -> list[WorkItem]:
    """The first `limit` requests. Raises OptionError with file and line."""
    items: list[WorkItem] = []
    for place, row in json_lines(path):
        if limit is not None and len(items) == limit:
            break
        items.append(WorkItem(_prompt(place, row), positive(place, row, "output_tokens")))
    if not items:
        raise OptionError(f"{path}: expected lines like {_LAYOUT}, found none")
    return items


def positive(place: str, row: dict[str, Any], field: str) -> int:
    value = row.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise OptionError(f"{place}: {field}: expected a whole number of 1 or more, found {value!r}")
    return value


def _prompt(place: str, row: dict[str, Any]) -> str | list[int]:
    text = row.get("prompt")
    if isinstance(text, str) and text:
        return text
    ids = next((row[name] for name in _ID_FIELDS if name in row), None)
    if isinstance(ids, list) and ids and all(isinstance(id, int) and id >= 0 for id in ids):
        return ids
    raise OptionError(f"{place}: expected a line like {_LAYOUT}, found the fields {', '.join(row) or '(none)'}")
