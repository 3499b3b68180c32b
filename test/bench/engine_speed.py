"""Decode and prefill speed of an engine, as ratios to what the machine can do.

    python test/bench/engine_speed.py ENGINE [--batch 1 8 32] [--input 128] [--prefill 512 2048] [--out FILE]

Decode: seconds per step of a batch, from two runs that differ only in how many tokens they make, so
that prefill and start-up cancel. Prefill: seconds to the first token of one prompt, median of five.
On CUDA the read and matrix ceilings are measured first (test/gpu/ceilings.py) and the floor of a
step is the bytes of weights and KV over the read ceiling. Prompts are random tokens.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from llmc.runtime import KvCacheConfig, load_engine
from llmc.runtime.benchmark import decode_seconds, prefill_seconds

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
from support.report import header


def step_bytes(manifest: dict[str, Any], plan: dict[str, Any], batch: int, context: int) -> int:
    """Bytes a decode step must read: every weight but the embedding table's other rows, and the KV."""
    size = {"f32": 4, "f16": 2, "bf16": 2}
    total = 0
    table = embedding_weight(plan)
    for tensor in manifest["weights"]["tensors"]:
        count = size[tensor["dtype"]]
        for extent in tensor["shape"]:
            count *= extent
        if tensor["name"] != table:
            total += count
    for layer in plan["kv_cache"]["layers"]:
        total += batch * context * layer["heads"] * (layer["head_dim"] + layer["v_head_dim"]) * size[layer["dtype"]]
    return total


def embedding_weight(plan: dict[str, Any]) -> str | None:
    """The table that only the embedding reads (a tied one is read whole by the logits)."""
    users: dict[str, set[str]] = {}
    for launch in plan["ranges"][0]["launches"]:
        anchor = plan["kernels"][launch["kernel"]]["anchor"]
        for argument in launch["args"]:
            base = argument["tensor_map"]["base"] if "tensor_map" in argument else argument
            if "weight" in base:
                users.setdefault(base["weight"], set()).add(anchor)
    return next((name for name, anchors in users.items() if anchors == {"embedding"}), None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", type=Path)
    parser.add_argument("--batch", type=int, nargs="*", default=[1, 8, 32])
    parser.add_argument("--input", type=int, default=128)
    parser.add_argument("--prefill", type=int, nargs="*", default=[512, 2048])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    manifest = json.loads((options.engine / "manifest.json").read_text())
    plan = json.loads((options.engine / "plan.json").read_text())
    report = header(options.engine) | {"limits": manifest["limits"], "decode": [], "prefill": []}
    if manifest["target"]["name"] != "host":
        sys.path.insert(0, str(Path(__file__).parents[1] / "gpu"))
        import torch
        from ceilings import measure

        report["ceilings"] = measure()
        torch.cuda.empty_cache()
    started = time.perf_counter()
    kv_cache = KvCacheConfig(enable_block_reuse=False)  # prompts are repeated, and each is to be computed
    with load_engine(
        options.engine, num_threads=options.threads, verify_weights="never", kv_cache_config=kv_cache
    ) as engine:
        report["load_seconds"] = time.perf_counter() - started
        for batch in options.batch:
            step = decode_seconds(engine, batch, options.input)
            row = {"batch": batch, "input": options.input, "seconds_per_step": step, "tokens_per_second": batch / step}
            if "ceilings" in report:
                floor = step_bytes(manifest, plan, batch, options.input + 48) / report["ceilings"]["read_bytes_per_s"]
                row |= {"floor_seconds": floor, "of_floor": floor / step}
            report["decode"].append(row)
            print(json.dumps(row), flush=True)
        for length in options.prefill:
            first = prefill_seconds(engine, length)
            row = {"tokens": length, "seconds": first, "tokens_per_second": length / first}
            report["prefill"].append(row)
            print(json.dumps(row), flush=True)
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
