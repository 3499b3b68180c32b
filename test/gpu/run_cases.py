"""Runs the kernels that `build_cases.py` compiled and compares them with references on the GPU.

    python test/gpu/run_cases.py FOLDER [--out FILE.json] [--only WORD]

Needs torch with CUDA, and nothing of llmc. Inputs are fresh random data; outputs are poisoned with
NaN first, as are the unused pages and slots of the KV cache. References are float32 (float64 for the
row kernels) on the same inputs. Exits with 1 when a case fails.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from driver import Kernel
from problem import Problem
from references import PROBLEMS

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
from support.report import header

BLOCK = 64


def variant_of(case: dict[str, Any], tokens: int) -> dict[str, Any]:
    for variant in case["variants"]:
        if variant["min_tokens"] <= tokens and (variant["max_tokens"] is None or tokens <= variant["max_tokens"]):
            return variant
    raise ValueError(f"{case['name']}: no variant for {tokens} tokens")


def bind(folder: Path, case: dict[str, Any], problem: Problem, cache: dict[str, Kernel]) -> list[Any]:
    """The launches of a case on a problem's buffers."""

    variant = variant_of(case, problem.tokens)
    # All ones is NaN in every type; a kernel must not count on what it finds there.
    problem.workspace = torch.full((max(variant["workspace_bytes"], 1),), 0xFF, device="cuda", dtype=torch.uint8)
    # Each launch finds it zero and leaves it zero.
    problem.zeroed = torch.zeros(max(variant["zeroed_bytes"], 1), device="cuda", dtype=torch.uint8)

    def address(argument: dict[str, Any]) -> int:
        if "workspace" in argument:
            return problem.workspace.data_ptr() + argument["workspace"]
        if "zeroed" in argument:
            return problem.zeroed.data_ptr()
        if "result" in argument:
            return problem.results[argument["result"]].data_ptr()
        operand = problem.operands[argument["operand"]]
        return (operand[argument["part"]] if "part" in argument else operand).data_ptr()

    launches = []
    for launch in variant["launches"]:
        name = launch["cubin"]
        if name not in cache:
            cache[name] = Kernel((folder / name).read_bytes(), launch["kernel"])
        launches.append(cache[name].bind(launch["grid"], launch["args"], address, problem.sizes))
    return launches


def run(folder: Path, case: dict[str, Any], tokens: int, max_tokens: int, cache: dict[str, Kernel]) -> dict[str, Any]:
    """One case at one token count: its errors, and whether a second run gives the same bits."""
    problem = PROBLEMS[case["kind"]](case, tokens, max_tokens)
    launches = bind(folder, case, problem, cache)
    problem.poison()
    for launch in launches:
        launch()
    torch.cuda.synchronize()
    errors = problem.errors()
    first = [r.clone() for r in problem.outputs()]
    problem.poison()
    for launch in launches:
        launch()
    torch.cuda.synchronize()
    same = all(
        torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in zip(first, problem.outputs(), strict=True)
    )
    clean = not problem.zeroed.any().item()
    passed = same and clean and all(error["value"] <= error["limit"] for error in errors)
    return {
        "case": case["name"],
        "tokens": tokens,
        "errors": errors,
        "same_bits": same,
        "zeroed": clean,
        "passed": passed,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    seed = int(time.time())
    torch.manual_seed(seed)
    bundle = json.loads((options.folder / "cases.json").read_text())
    rows, cache = [], {}
    for case in bundle["cases"]:
        if options.only not in case["name"]:
            continue
        for tokens in case["tokens"]:
            row = run(options.folder, case, tokens, bundle["max_tokens"], cache)
            rows.append(row)
            shown = "  ".join(f"{e['name']} {e['value']:.2e}/{e['limit']:.0e}" for e in row["errors"])
            verdict = "ok  " if row["passed"] else "FAIL"
            print(
                f"{verdict} {row['case']:34s} T={tokens:<5d} {shown}{'' if row['same_bits'] else '  BITS DIFFER'}",
                flush=True,
            )
    failed = [row for row in rows if not row["passed"]]
    report = {**header(), "torch": torch.__version__, "seed": seed, "rows": rows}
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"{len(rows) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
