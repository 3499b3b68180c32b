"""Offline throughput of an engine: many prompts at once, all lengths fixed, tokens/s over the whole run.

    python test/bench/throughput.py ENGINE [--shape 128/128x2048 512/256x1024 ...] [--out FILE.json]

A shape is input/output x requests. Prompts are random tokens, all different; every request runs to its
length (greedy, ignore_eos). Wall time goes from the first submit to the last token, as published
figures of other engines count it. Beside each: how full the steps were. Also the seconds from the
start of loading to the first token of a prompt of 128.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from pathlib import Path
from typing import Any

from llmc.runtime import KvCacheConfig, SamplingParams, load_engine

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
from support.report import header

SHAPES = ["128/128x2048", "512/256x1024", "2048/128x256", "128/2048x256"]


def shape(text: str) -> tuple[int, int, int]:
    """(input tokens, output tokens, requests)."""
    match = re.fullmatch(r"(\d+)/(\d+)x(\d+)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"expected input/output x requests like 128/128x2048, found {text!r}")
    return int(match[1]), int(match[2]), int(match[3])


def measure(engine: Any, size: tuple[int, int, int], rng: random.Random) -> dict[str, Any]:
    inputs, outputs, requests = size
    vocab = engine.info["vocab_size"]
    prompts = [[rng.randrange(vocab) for _ in range(inputs)] for _ in range(requests)]
    params = SamplingParams(max_tokens=outputs, temperature=0.0, ignore_eos=True)
    before = engine.stats
    started = time.perf_counter()
    results = engine.generate(prompts, params)
    seconds = time.perf_counter() - started
    after = engine.stats
    made = sum(len(r.outputs[0].token_ids) for r in results)
    if made != outputs * requests:
        raise RuntimeError(f"expected {outputs * requests} tokens, got {made}")
    steps = after["num_steps"] - before["num_steps"]
    return {
        "input": inputs,
        "output": outputs,
        "requests": requests,
        "seconds": seconds,
        "output_tokens_per_second": made / seconds,
        "tokens_per_second": (made + inputs * requests) / seconds,
        "steps": steps,
        "tokens_per_step": (made + inputs * requests) / steps,
        "preemptions": after["num_preemptions"] - before["num_preemptions"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", type=Path)
    parser.add_argument("--shape", type=shape, nargs="*", default=[shape(s) for s in SHAPES])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    manifest = json.loads((options.engine / "manifest.json").read_text())
    report = header(options.engine) | {"limits": manifest["limits"], "runs": []}
    if manifest["target"]["name"] != "host":
        sys.path.insert(0, str(Path(__file__).parents[1] / "gpu"))
        import torch
        from ceilings import measure as ceilings

        report["ceilings"] = ceilings()
        torch.cuda.empty_cache()
    rng = random.Random(options.seed)
    started = time.perf_counter()
    # Every prompt is to be computed: prompts are random, so nothing would be found anyway.
    with load_engine(
        options.engine, verify_weights="never", kv_cache_config=KvCacheConfig(enable_block_reuse=False)
    ) as engine:
        report["load_seconds"] = time.perf_counter() - started
        vocab = engine.info["vocab_size"]
        first = [rng.randrange(vocab) for _ in range(128)]
        engine.generate([first], SamplingParams(max_tokens=1, temperature=0.0, ignore_eos=True))
        report["load_to_first_token_seconds"] = time.perf_counter() - started
        print(json.dumps({k: v for k, v in report.items() if k.startswith("load")}), flush=True)
        for size in options.shape:
            row = measure(engine, size, rng)
            report["runs"].append(row)
            print(json.dumps(row), flush=True)
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
