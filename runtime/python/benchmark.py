"""Speed of an engine as its users see it: requests in, tokens out, the host's work included."""

from __future__ import annotations

import random
import statistics
import time
from typing import Any

from llmc.runtime.engine import Engine
from llmc.runtime.sampling_params import SamplingParams


def random_prompts(count: int, length: int, vocab_size: int) -> list[dict[str, Any]]:
    return [{"prompt_token_ids": [random.randrange(3, vocab_size) for _ in range(length)]} for _ in range(count)]


def generate_seconds(engine: Engine, prompts: list[dict[str, Any]], tokens: int) -> float:
    """Seconds until every prompt has `tokens` tokens, greedy, past any end of sequence."""
    params = SamplingParams(temperature=0.0, max_tokens=tokens, ignore_eos=True)
    start = time.perf_counter()
    engine.generate(prompts, params)
    return time.perf_counter() - start


def decode_seconds(engine: Engine, batch: int, length: int, few: int = 16, many: int = 80) -> float:
    """Seconds per decode step of `batch` sequences of `length` tokens: the median of three differences
    between runs that make `few` and `many` tokens, so that prefill and start-up cancel."""
    prompts = random_prompts(batch, length, engine.info["vocab_size"])
    generate_seconds(engine, prompts, 4)
    return statistics.median(
        (generate_seconds(engine, prompts, many) - generate_seconds(engine, prompts, few)) / (many - few)
        for _ in range(3)
    )


def prefill_seconds(engine: Engine, length: int, repeats: int = 5) -> float:
    """Seconds to the first token of one prompt of `length` random tokens, the median."""
    vocab_size = engine.info["vocab_size"]
    generate_seconds(engine, random_prompts(1, length, vocab_size), 1)
    return statistics.median(generate_seconds(engine, random_prompts(1, length, vocab_size), 1) for _ in range(repeats))
