"""The JSON Schema Test Suite, as the source distribution of the package `jsonschema` carries it (MIT)."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PACKAGE = "jsonschema==4.26.0"
FOLDER = Path(__file__).parents[3] / "build" / "clients" / "json-schema-suite"
#: Folder of the suite -> what `$schema` says; without it a schema is read as one of the newest draft.
DRAFTS = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}


def _archive() -> Path:
    """Downloaded once."""
    if not (found := list(FOLDER.glob("jsonschema-*.tar.gz"))):
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download", "--no-deps"]
        subprocess.run([*pip, "--no-binary", ":all:", "--dest", str(FOLDER), PACKAGE], check=True)
        found = list(FOLDER.glob("jsonschema-*.tar.gz"))
    return found[0]


def schemas() -> Iterator[tuple[str, Any, list[tuple[Any, bool]]]]:
    """(name, schema, [(instance, whether it is valid)])."""
    with tarfile.open(_archive()) as archive:
        for member in sorted(archive.getnames()):
            _, *folders, file = member.split("/")
            if folders[:2] != ["json", "tests"] or len(folders) != 3 or not file.endswith(".json"):
                continue
            if (draft := DRAFTS.get(folders[2])) is None:
                continue
            content = archive.extractfile(member)
            assert content
            for case in json.load(content):
                schema = case["schema"]
                if isinstance(schema, dict):
                    schema = {"$schema": draft, **schema}
                tests = [(test["data"], test["valid"]) for test in case["tests"]]
                yield f"{folders[2]}/{file}: {case['description']}", schema, tests
