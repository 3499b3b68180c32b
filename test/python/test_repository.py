"""Habits of the repository that a machine can check."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAX_LINES = 800  # above this, files of this field become the ones people complain about
GENERATED = ("docs/reference/",)


def tracked(*patterns: str) -> list[Path]:
    command = ["git", "ls-files", "--", *patterns]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return [path for line in result.stdout.splitlines() if (path := ROOT / line).exists()]
    # A copy without git, such as an unpacked archive: everything but what was built there.
    found = {path for pattern in patterns for path in ROOT.rglob(pattern.rpartition("/")[2])}
    built = ("build", ".venv")
    fits = (path for path in found if path.relative_to(ROOT).parts[0] not in built)
    return sorted(path for path in fits if any(path.relative_to(ROOT).match(pattern) for pattern in patterns))


def test_files_are_short() -> None:
    code = tracked("*.py", "*.cpp", "*.h", "*.td", "*.mlir", "*.cmake", "*.md")
    lengths = {
        str(path.relative_to(ROOT)): path.read_text().count("\n")
        for path in code
        if not str(path.relative_to(ROOT)).startswith(GENERATED)
    }
    assert not {name: n for name, n in lengths.items() if n > MAX_LINES}


def test_links_between_documents_lead_somewhere() -> None:
    broken = []
    for page in tracked("*.md"):
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" in target or target.startswith("mailto:"):
                continue
            if not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken
