"""`make demo`: compiles a small chat model (tools/smollm2.py) for this machine's CPU and asks it a question."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from smollm2 import FOLDER, find_model

QUESTION = "What is the capital of France?"


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
