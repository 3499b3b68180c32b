"""The .td files explain themselves, and docs/reference says what they say."""

import json
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PHASES = sorted(p.parent.name for p in ROOT.glob("passes/*/Passes.td"))
DIALECTS = {"llm": "Llm", "tile": "Tile"}


def wheel_dir(package: str) -> Path:
    spec = find_spec(package)
    assert spec and spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations)))


def tablegen(tool: Path, td: Path, *arguments: str) -> str:
    include = [td.parent, ROOT, wheel_dir("mlir") / "include"]
    command = [tool, td, *arguments, *(f"-I{path}" for path in include)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@cache
def records(td: Path) -> dict[str, Any]:
    return json.loads(tablegen(wheel_dir("llvm") / "bin" / "llvm-tblgen", td, "--dump-json"))


def undescribed(td: Path, kind: str, *fields: str, prefix: str = "") -> list[str]:
    """Records of a class whose `fields` are empty, as `file:line name: field`."""
    every = records(td)
    return [
        f"{every[name]['!locs'][0]} {name}: {field}"
        for name in every["!instanceof"].get(kind, [])
        if name.startswith(prefix)
        for field in fields
        if not (every[name].get(field) or "").strip()
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_ops_types_and_attributes_are_described(dialect: str) -> None:
    prefix = DIALECTS[dialect]
    td = ROOT / "dialects" / dialect / f"{prefix}Ops.td"
    missing = undescribed(td, "Dialect", "summary", "description", prefix=prefix)
    missing += undescribed(td, "Op", "summary", "description", prefix=prefix)
    missing += undescribed(td, "TypeDef", "summary", "description", prefix=prefix)
    # Enum attributes have a summary from their enum and no description.
    missing += undescribed(td, "AttrDef", "summary", prefix=prefix)
    assert not missing


@pytest.mark.parametrize("phase", PHASES)
def test_passes_are_described(phase: str) -> None:
    td = ROOT / "passes" / phase / "Passes.td"
    assert not undescribed(td, "PassBase", "summary", "description")


@pytest.mark.parametrize("phase", PHASES)
def test_pass_options_are_described(phase: str) -> None:
    td = ROOT / "passes" / phase / "Passes.td"
    assert not undescribed(td, "Option", "description")


def pages() -> dict[str, tuple[Path, list[str]]]:
    result = {
        f"{dialect}.md": (
            ROOT / "dialects" / dialect / f"{prefix}Ops.td",
            ["-gen-dialect-doc", f"-dialect={dialect}"],
        )
        for dialect, prefix in DIALECTS.items()
    }
    for phase in PHASES:
        td = ROOT / "passes" / phase / "Passes.td"
        result[f"passes-{phase}.md"] = (td, ["-gen-pass-doc"])
    return result


@pytest.mark.parametrize("page", pages())
def test_page_is_up_to_date(page: str) -> None:
    td, arguments = pages()[page]
    wanted = tablegen(wheel_dir("mlir") / "bin" / "mlir-tblgen", td, *arguments)
    path = ROOT / "docs" / "reference" / page
    assert path.exists(), "run `make docs`"
    assert path.read_text() == wanted, "run `make docs`"
