"""Compiles the kernels of `kernel_cases.py` into a folder that a GPU machine can run.

    python test/gpu/build_cases.py FOLDER [--only WORD] [--kernels portable]

Needs no GPU. With `--kernels portable` they are those of codegen/sm80, compiled for sm_90 too, with cases
that only these serve. FOLDER receives one cubin for each kernel variant and cases.json.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path

from kernel_cases import TOKENS, hopper_cases, portable_cases
from mlir import ir

from llmc.codegen.chips import CHIPS
from llmc.codegen.gpu.generator import compile_kernel
from llmc.dialects import register

MAX_TOKENS = 8192


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="only the cases whose name holds this word")
    parser.add_argument("--kernels", choices=("hopper", "portable"), default="hopper")
    options = parser.parse_args()
    chip = dataclasses.replace(CHIPS["sm_90"], hopper=options.kernels == "hopper")
    options.folder.mkdir(parents=True, exist_ok=True)
    context = ir.Context()
    register(context)
    cases, failed = [], 0
    for case in hopper_cases() if chip.hopper else portable_cases():
        if options.only not in case["name"]:
            continue
        start = time.perf_counter()
        with context, ir.Location.unknown():
            module = ir.Module.parse(case["text"])
            try:
                kernel = compile_kernel(module.body.operations[0], chip, {"max_num_tokens": MAX_TOKENS})
            except Exception as error:  # one broken kernel must not hide the others
                print(f"{case['name']:36s} FAILED: {type(error).__name__}: {str(error)[:600]}", flush=True)
                failed += 1
                continue
        variants = []
        for variant in kernel.variants:
            launches = []
            for launch in variant.launches:
                file = f"{launch.entry.name}.cubin"
                (options.folder / file).write_bytes(launch.entry.code.data)
                launches.append(
                    {
                        "kernel": launch.entry.description(),
                        "cubin": file,
                        "grid": list(launch.grid),
                        "args": list(launch.arguments),
                    }
                )
            variants.append(
                {
                    "min_tokens": variant.min_tokens,
                    "max_tokens": variant.max_tokens,
                    "workspace_bytes": variant.workspace_bytes,
                    "zeroed_bytes": variant.zeroed_bytes,
                    "launches": launches,
                }
            )
        cases.append({**case, "tokens": TOKENS, "variants": variants})
        used = ", ".join(
            f"{launch['kernel']['registers']} regs {launch['kernel']['shared_bytes']} B"
            for variant in variants
            for launch in variant["launches"]
        )
        print(f"{case['name']:36s} {time.perf_counter() - start:5.1f} s  {used}", flush=True)
    text = json.dumps({"max_tokens": MAX_TOKENS, "cases": cases}, indent=1)
    (options.folder / "cases.json").write_text(text, encoding="utf-8")
    print(f"{len(cases)} cases built, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
