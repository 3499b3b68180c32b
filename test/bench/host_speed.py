"""Speed of a host engine beside transformers on the same weights, with the same threads, in one run.

    python test/bench/host_speed.py ENGINE CHECKPOINT [--threads 2] [--out FILE]

CHECKPOINT: the GGUF file or Hugging Face folder that the engine was compiled from. transformers runs
eager, in bfloat16 and in float32, with its own KV cache. Decode: seconds a token after a prompt of
128, one sequence. Prefill: seconds until the logits of the last of 512 tokens. Medians; the runs of
the three take turns, so that a change of the machine's mood hits all.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fidelity import load_reference
from support.report import header

from llmc.runtime import KvCacheConfig, SamplingParams, load_engine

PROMPT, GENERATED, PREFILL, ROUNDS = 128, 64, 512, 5


class Engine:
    """Ours: differences of runs cancel what both have."""

    def __init__(self, path: Path, threads: int) -> None:
        # Prompts are repeated, and each is to be computed.
        kv_cache = KvCacheConfig(enable_block_reuse=False)
        self.engine = load_engine(path, num_threads=threads, kv_cache_config=kv_cache)

    def generate(self, ids: list[int], tokens: int) -> float:
        params = SamplingParams(temperature=0.0, max_tokens=tokens, ignore_eos=True)
        start = time.perf_counter()
        self.engine.generate([{"prompt_token_ids": ids}], params)
        return time.perf_counter() - start

    def prefill(self, ids: list[int]) -> float:
        return self.generate(ids, 1)

    def decode(self, ids: list[int]) -> float:
        return (self.generate(ids, GENERATED + 1) - self.generate(ids, 1)) / GENERATED


class Transformers:
    def __init__(self, model: Any) -> None:
        self.model = model

    @torch.inference_mode()
    def prefill(self, ids: list[int]) -> float:
        inputs = torch.tensor([ids])
        start = time.perf_counter()
        self.model(inputs, use_cache=True, logits_to_keep=1).logits.argmax(-1).item()
        return time.perf_counter() - start

    @torch.inference_mode()
    def decode(self, ids: list[int]) -> float:
        state = self.model(torch.tensor([ids]), use_cache=True, logits_to_keep=1)
        token = state.logits[:, -1:].argmax(-1)
        start = time.perf_counter()
        for _ in range(GENERATED):
            state = self.model(token, cache=state.cache, use_cache=True)
            token = state.logits[:, -1:].argmax(-1)
        return (time.perf_counter() - start) / GENERATED


def medians(runs: dict[str, Callable[[], float]]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in runs}
    for round in range(ROUNDS + 1):
        for name, run in runs.items():
            took = run()
            if round:  # the first one warms up
                times[name].append(took)
    return {name: statistics.median(taken) for name, taken in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", type=Path)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    full = load_reference(options.checkpoint, "cpu").eval()
    full.set_attn_implementation("eager")
    half = load_reference(options.checkpoint, "cpu").eval().to(torch.bfloat16)
    half.set_attn_implementation("eager")
    rivals = {
        "llmc": Engine(options.engine, options.threads),
        "transformers_bf16": Transformers(half),
        "transformers_f32": Transformers(full),
    }
    random.seed(0)
    vocab = full.config.vocab_size
    prompt, long = ([random.randrange(3, vocab) for _ in range(n)] for n in (PROMPT, PREFILL))
    decode = medians({name: (lambda r=rival: r.decode(prompt)) for name, rival in rivals.items()})
    prefill = medians({name: (lambda r=rival: r.prefill(long)) for name, rival in rivals.items()})

    report = header(options.engine) | {
        "threads": options.threads,
        "prompt": PROMPT,
        "prefill_tokens": PREFILL,
    }
    for what, seconds, tokens in (("decode", decode, 1), ("prefill", prefill, PREFILL)):
        rates = {name: tokens / took for name, took in seconds.items()}
        best = max(rate for name, rate in rates.items() if name != "llmc")
        report[what] = {"tokens_per_second": rates, "llmc_over_best_transformers": rates["llmc"] / best}
        for name, rate in rates.items():
            print(f"{what:8} {name:18} {rate:9.1f} tokens/s")
        print(f"{what:8} llmc over the better transformers: {rates['llmc'] / best:.2f}x", flush=True)
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
