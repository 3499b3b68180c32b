"""Every op and every pass has its lit files: round trip, invalid input, folding."""

import re
from pathlib import Path
from typing import Any

import pytest
from test_reference import DIALECTS, PHASES, ROOT, records

LIT = ROOT / "test" / "lit"


def ops(dialect: str) -> dict[str, Any]:
    """The records of a dialect's ops, by name as printed."""
    prefix = DIALECTS[dialect]
    every = records(ROOT / "dialects" / dialect / f"{prefix}Ops.td")
    named = (every[name] for name in every["!instanceof"]["Op"] if name.startswith(f"{prefix}_"))
    return {f"{dialect}.{record['opName']}": record for record in named}


def family(record: Any) -> str:
    """`decoder` for an op of LlmDecoderOps.td."""
    match = re.search(r"(?:Llm|Tile)(\w+)Ops\.td", record["!locs"][0])
    assert match
    return match[1].lower()


def absent(dialect: str, suffix: str, *fields: str) -> list[str]:
    """Ops that set one of `fields` (all ops without fields) and do not occur in `<family>_<suffix>.mlir`."""
    missing = []
    for name, record in ops(dialect).items():
        if fields and not any(record.get(field) for field in fields):
            continue
        path = LIT / "dialects" / dialect / f"{family(record)}_{suffix}.mlir"
        if not path.exists() or not re.search(rf"\b{re.escape(name)}\b", path.read_text(encoding="utf-8")):
            missing.append(f"{name} in {path.relative_to(ROOT)}")
    return missing


@pytest.mark.parametrize("dialect", DIALECTS)
def test_ops_make_a_round_trip(dialect: str) -> None:
    assert not absent(dialect, "ops")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_verified_ops_have_invalid_cases(dialect: str) -> None:
    assert not absent(dialect, "ops_invalid", "hasVerifier")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_folded_ops_have_folding_cases(dialect: str) -> None:
    assert not absent(dialect, "folding", "hasFolder", "hasCanonicalizer", "hasCanonicalizeMethod")


def verifier_messages(source: Path) -> list[str]:
    """The text of each error that a file emits, up to the first value, where it says more than one word."""
    text = source.read_text(encoding="utf-8")
    found = re.findall(r'emit(?:Op)?Error\(\s*\)?\s*(?:<<\s*)?"((?:[^"\\]|\\.)*)"', text)
    return [message.replace('\\"', '"').strip() for message in found if " " in message.strip()]


SOURCES = [path for dialect in DIALECTS for path in sorted((ROOT / "dialects" / dialect).glob("*.cpp"))]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_each_message_of_a_verifier_is_provoked(source: Path) -> None:
    folder = LIT / "dialects" / source.parent.name
    tests = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*_invalid.mlir"))
    assert not [message for message in verifier_messages(source) if message not in tests]


#: Passes that take every valid module: what they do not recognise they leave alone.
TAKES_EVERYTHING = {
    "llm-raise-norm": "leaves arithmetic that is no norm",
    "llm-raise-rope-table": "leaves gathers of other tables",
    "llm-raise-glu": "leaves arithmetic that is no activation or gate",
    "llm-raise-attention": "leaves views and scales that it cannot fold",
    "host-expand-copies": "expands what it finds",
    "host-expand-math": "expands what it finds",
    "host-tile-rows": "leaves kernels without row loops",
    "tile-strip-hopper": "removes what it finds",
}


def passes() -> list[tuple[str, str, str]]:
    """Phase, argument and source stem of each pass."""
    found = []
    for phase in PHASES:
        every = records(ROOT / "passes" / phase / "Passes.td")
        for name in every["!instanceof"].get("PassBase", []):
            found.append((phase, every[name]["argument"], re.sub("^(Llm|Tile|Host)", "", name)))
    return found


@pytest.mark.parametrize(("phase", "argument", "stem"), passes(), ids=lambda value: str(value))
def test_passes_have_their_files(phase: str, argument: str, stem: str) -> None:
    """`<pass>.mlir` with good cases and `<pass>_invalid.mlir` with errors, unless the pass takes everything."""
    folder = LIT / "passes" / phase
    assert f"--{argument}" in (folder / f"{argument}.mlir").read_text(encoding="utf-8")
    invalid = folder / f"{argument}_invalid.mlir"
    if argument in TAKES_EVERYTHING:
        source = ROOT / "passes" / phase / f"{stem}.cpp"
        assert not re.search(r"emit(Op)?Error", source.read_text(encoding="utf-8"))
        assert not invalid.exists()
        return
    text = invalid.read_text(encoding="utf-8")
    assert f"--{argument}" in text
    assert re.search(r"expected-error|RUN: not ", text)


def test_lit_files_of_passes_are_named_after_a_pass() -> None:
    """`<pass or pipeline>[_<topic>][_invalid].mlir`, in the folder of the pass."""
    named = {(phase, argument) for phase, argument, _ in passes()} | {("tile", "tile-to-nvvm")}
    files = [path.relative_to(LIT / "passes") for path in (LIT / "passes").glob("*/*.mlir")]
    assert not [str(path) for path in files if (path.parts[0], path.stem.split("_")[0]) not in named]
