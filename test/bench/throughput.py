"""Offline throughput of an engine, for published figures: `llmc bench throughput` beside the machine's ceilings.

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
import sys
import time
from pathlib import Path
from typing import Any

from llmc.compiler.benchmark.lengths import Lengths
from llmc.compiler.benchmark.offline import run_offline
from llmc.compiler.benchmark.summary import summarize
from llmc.compiler.benchmark.watch import EngineWatch
from llmc.compiler.benchmark.workload import synthetic
from llmc.compiler.cli.bench.workloads import parse_shape
from llmc.errors import OptionError
from llmc.runtime import KvCacheConfig, load_engine

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
from support.report import header

SHAPES = ["128/128x2048", "512/256x1024", "2048/128x256", "128/2048x256"]


def measure(engine: Any, text: str, rng: random.Random) -> dict[str, Any]:
    inputs, outputs, requests = parse_shape(text)
    lengths = Lengths.parse("input", inputs), Lengths.parse("output", outputs)
    items = synthetic(*lengths, requests, engine.info["vocab_size"], rng)
    watch = EngineWatch(lambda: engine.stats)
    records, seconds = run_offline(engine, items, observe=watch.look)
    figures, steps = summarize(records, seconds), watch.summary()
    if figures["output_tokens"] != lengths[1].low * requests:
        raise RuntimeError(f"expected {outputs} x {requests} tokens, got {figures['output_tokens']}")
    return {
        "input": lengths[0].low,
        "output": lengths[1].low,
        "requests": requests,
        "seconds": seconds,
        "output_tokens_per_second": figures["output_tokens_per_second"],
        "tokens_per_second": figures["tokens_per_second"],
        "latency": figures["latency"],
        **{name: steps[name] for name in ("steps", "tokens_per_step", "preemptions", "kv_used_peak")},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", type=Path)
    parser.add_argument("--shape", nargs="*", default=SHAPES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    try:
        for text in options.shape:
            parse_shape(text)
    except OptionError as error:
        parser.error(str(error))
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
        one = Lengths(128, 128), Lengths(1, 1)
        run_offline(engine, synthetic(*one, 1, engine.info["vocab_size"], rng))
        report["load_to_first_token_seconds"] = time.perf_counter() - started
        print(json.dumps({k: v for k, v in report.items() if k.startswith("load")}), flush=True)
        for text in options.shape:
            row = measure(engine, text, rng)
            report["runs"].append(row)
            print(json.dumps(row), flush=True)
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
