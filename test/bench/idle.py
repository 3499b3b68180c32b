"""The share of decode time in which the GPU computes nothing, from the trace of steps with the device's timestamps.

    python test/bench/idle.py ENGINE [--batch 1 64 256] [--steps 300] [--out FILE.json] [--traces FOLDER]

A step's kernels run from an event behind the copies of its inputs to an event behind its last kernel.
Idle is all the rest: copies of inputs and outputs, and whatever the GPU waits for the host. The events
themselves cost some microseconds a step, so the true share is lower. --traces keeps the traces, for
ui.perfetto.dev.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
from support.report import header

Span = dict[str, Any]


def decode_spans(events: Iterable[Span], batch: int) -> dict[int, dict[str, Span]]:
    """Step number -> spans by name, of the longest row of steps that decode `batch` sequences each."""
    steps: dict[int, dict[str, Span]] = {}
    for event in events:
        args = event.get("args", {})
        if event["ph"] == "X" and args["T"] == args["S"] == args["R"] == batch:
            steps.setdefault(args["step"], {})[event["name"]] = event
    longest: list[int] = []
    row: list[int] = []
    for number in sorted(steps):
        row = [*row, number] if row and number == row[-1] + 1 else [number]
        longest = max(longest, row, key=len)
    return {number: steps[number] for number in longest}


def summary(events: Iterable[Span], batch: int) -> dict[str, Any]:
    """Shares of the time from the first kernel of the row to the last; microseconds of a step (medians)."""
    steps = list(decode_spans(events, batch).values())
    if len(steps) < 10:
        raise RuntimeError(f"expected a row of decode steps of {batch} sequences, found {len(steps)}")
    if "kernels" not in steps[0]:
        raise RuntimeError("the trace has no times of a device: idle.py measures engines for GPUs")
    begin = steps[0]["kernels"]["ts"]
    end = steps[-1]["kernels"]["ts"] + steps[-1]["kernels"]["dur"]
    busy = sum(step["kernels"]["dur"] for step in steps)
    copies = sum(step["inputs"]["dur"] for step in steps[1:])
    pairs = list(itertools.pairwise(steps))
    gaps = [b["kernels"]["ts"] - a["kernels"]["ts"] - a["kernels"]["dur"] for a, b in pairs]
    result = {
        "batch": batch,
        "steps": len(steps),
        "idle_share": 1 - busy / (end - begin),
        "idle_share_without_input_copies": 1 - (busy + copies) / (end - begin),
        "step_us": (steps[-1]["kernels"]["ts"] - begin) / (len(steps) - 1),
        "gap_us": {"median": statistics.median(gaps), "max": max(gaps)},
    }
    for name in ("kernels", "inputs", "schedule", "launch", "wait", "emit"):
        result[f"{name}_us"] = statistics.median(step[name]["dur"] for step in steps)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", type=Path)
    parser.add_argument("--batch", type=int, nargs="*", default=[1, 64, 256])
    parser.add_argument("--input", type=int, default=128, help="tokens of a prompt")
    parser.add_argument("--steps", type=int, default=300, help="decode steps of each batch")
    parser.add_argument("--no-overlap", action="store_true", help="also without overlap, for comparison")
    parser.add_argument("--traces", type=Path, help="folder that keeps the traces")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    from llmc.runtime import KvCacheConfig, SamplingParams, load_engine

    report: dict[str, Any] = header(options.engine) | {"runs": []}
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.traces or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for overlap in (True, False) if options.no_overlap else (True,):
            trace = folder / f"steps_{'overlap' if overlap else 'no_overlap'}.json"
            tokens = max(options.batch) * (options.input + options.steps + 64)
            with load_engine(
                options.engine,
                verify_weights="never",
                overlap=overlap,
                trace_file=trace,
                kv_cache_config=KvCacheConfig(max_tokens=tokens, enable_block_reuse=False),
            ) as engine:
                vocab = engine.info["vocab_size"]
                params = SamplingParams(max_tokens=options.steps, temperature=0.0, ignore_eos=True)
                warm_up = SamplingParams(max_tokens=8, temperature=0.0, ignore_eos=True)
                for batch in options.batch:
                    prompts = [[rng.randrange(vocab) for _ in range(options.input)] for _ in range(batch)]
                    engine.generate(prompts, warm_up)  # records the graphs of these sizes
                    engine.generate(prompts, params)
            events = json.loads(trace.read_text())
            for batch in options.batch:
                row = summary(events, batch) | {"overlap": overlap}
                report["runs"].append(row)
                print(json.dumps(row), flush=True)
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
