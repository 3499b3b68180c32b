"""Checks and times candidate configurations of the linears, beside torch and the ceilings.

    python test/gpu/time_linears.py FOLDER [--out FILE.json] [--only WORD] [--check-only]

FOLDER comes from `build_linears.py`. Each candidate is first compared with a float32 reference on
fresh random inputs, at the full width and at an odd one, with poisoned results and twice (same bits).
Then all candidates of a shape and token count, and torch.matmul, are replayed in turns as CUDA graphs
over rotating operands; medians.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from ceilings import measure
from driver import Kernel
from references import Linear, randn
from time_cases import COPIES_BYTES, graph_of, interleaved

TOKENS = [64, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192, 16384]


def launches(folder: Path, alternative: dict[str, Any], problem: Linear, cache: dict[str, Kernel]) -> list[Any]:
    def address(argument: dict[str, Any]) -> int:
        if "result" in argument:
            return problem.results[argument["result"]].data_ptr()
        return problem.operands[argument["operand"]].data_ptr()

    bound = []
    for launch in alternative["launches"]:
        name = launch["cubin"]
        if name not in cache:
            cache[name] = Kernel((folder / name).read_bytes(), launch["kernel"])
        bound.append(cache[name].bind(launch["grid"], launch["args"], address, problem.sizes))
    return bound


def serves(alternative: dict[str, Any], tokens: int) -> bool:
    """Whether a candidate is worth timing at this token count."""
    width = alternative["width"]
    if alternative["family"] == "large":
        return tokens in alternative["tokens"]
    return (tokens <= width and (tokens > width // 2 or width == 8)) or (width == 128 and 128 < tokens <= 256)


def check(
    folder: Path,
    case: dict[str, Any],
    alternative: dict[str, Any],
    cache: dict[str, Kernel],
    problems: dict[int, Linear],
) -> list[dict]:
    width = alternative["width"]
    counts = {8: [1, 7], 0: [129, 391]}.get(width, [width, width - 3])
    rows = []
    for tokens in counts + ([201] if width == 128 else []):
        if tokens not in problems:
            problems[tokens] = Linear(case, tokens, 512)
        problem = problems[tokens]
        runs = []
        for _ in range(2):
            problem.poison()
            for launch in launches(folder, alternative, problem, cache):
                launch()
            torch.cuda.synchronize()
            runs.append(problem.outputs()[0].clone())
        errors = problem.errors()
        same = torch.equal(runs[0].view(torch.uint8), runs[1].view(torch.uint8))
        passed = same and all(e["value"] <= e["limit"] for e in errors)
        rows.append({"tokens": tokens, "errors": errors, "same_bits": same, "passed": passed})
        if not passed:
            print(f"FAIL {case['shape']} {alternative['label']} T={tokens} {errors} same={same}", flush=True)
    return rows


def time_shape(folder: Path, case: dict[str, Any], tokens: int, cache: dict[str, Kernel]) -> dict[str, Any]:
    n, k = case["n"], case["k"]
    copies = max(2, min(48, int(COPIES_BYTES / (n * k * 2)) + 1)) if tokens <= 512 else 2 if tokens <= 4096 else 1
    # Maps of activations are as long as the engine's: boxes that reach past a tensor are slow.
    problems = [Linear(case, tokens, max(tokens, 512)) for _ in range(copies)]
    outs = torch.empty(tokens, n, device="cuda", dtype=torch.bfloat16)
    graphs = {"torch": graph_of([lambda p=p: torch.matmul(p.x[:tokens], p.w.t(), out=outs) for p in problems])}
    for alternative in case["alternatives"]:
        if serves(alternative, tokens):
            bound = [launch for p in problems for launch in launches(folder, alternative, p, cache)]
            graphs[alternative["label"]] = graph_of(bound)
    times = interleaved(graphs, rounds=5, replays=2 if tokens <= 4096 else 1)
    return {name: seconds / copies * 1e6 for name, seconds in times.items()}


def torch_kernels(case: dict[str, Any], tokens: int) -> list[str]:
    """Names of the kernels that torch.matmul runs, which tell tile, cluster and split."""
    x, w = (randn(rows, case["k"], dtype=torch.bfloat16) for rows in (tokens, case["n"]))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        torch.matmul(x, w.t())
        torch.cuda.synchronize()
    return [event.key for event in profile.key_averages()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--check-only", action="store_true")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    seed = int(time.time())
    torch.manual_seed(seed)
    cases = [c for f in sorted(options.folder.glob("linears_*.json")) for c in json.loads(f.read_text())["cases"]]
    cases = [c for c in cases if options.only in c["shape"]]
    cache: dict[str, Kernel] = {}
    report: dict[str, Any] = {"seed": seed, "checks": [], "times_us": []}
    failed: set[tuple[str, str]] = set()
    for case in cases:
        problems: dict[int, Linear] = {}
        for alternative in case["alternatives"]:
            rows = check(options.folder, case, alternative, cache, problems)
            report["checks"].append({"shape": case["shape"], "label": alternative["label"], "rows": rows})
            if not all(row["passed"] for row in rows):
                failed.add((case["shape"], alternative["label"]))
    print(f"{len(report['checks'])} candidates, {len(failed)} wrong", flush=True)
    if not options.check_only:
        report["ceilings"] = measure()
        print(report["ceilings"], flush=True)
        for case in cases:
            case["alternatives"] = [a for a in case["alternatives"] if (case["shape"], a["label"]) not in failed]
            for tokens in TOKENS:
                times = time_shape(options.folder, case, tokens, cache)
                names = torch_kernels(case, tokens)
                report["times_us"].append({"shape": case["shape"], "tokens": tokens, "torch_kernels": names, **times})
                best = sorted((v, n) for n, v in times.items() if n != "torch")
                shown = "  ".join(f"{n} {v:.1f}" for v, n in best[:4])
                print(f"{case['shape']:12s} M={tokens:<5d} torch {times['torch']:.1f}  {shown}", flush=True)
            print(f"{time.time() - seed:.0f} s", flush=True)
            if options.out:  # after each shape, so that a later fault loses nothing
                options.out.write_text(json.dumps(report, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
