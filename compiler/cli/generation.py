"""What `llmc run` and `llmc chat` share: options, loading, streaming to the terminal."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from llmc.compiler.cli.arguments import add_option
from llmc.errors import CompileError, EngineError, OptionError

if TYPE_CHECKING:
    from llmc.runtime import LLM, CompletionDelta, SamplingParams


def add_generation_options(parser: argparse.ArgumentParser, max_tokens: int) -> None:
    sampling = parser.add_argument_group("sampling (default: what the model recommends, else greedy)")
    add_option(sampling, "max_tokens", "max_new_tokens", "max_output_len", short="n", type=int,
               default=max_tokens, help="longest answer in tokens")  # fmt: skip
    add_option(sampling, "temperature", type=float, help="0 is greedy")
    add_option(sampling, "top_k", type=int, help="choose among the k most likely tokens; 0: all")
    add_option(sampling, "top_p", type=float, help="choose among the most likely tokens that sum to p")
    add_option(sampling, "min_p", type=float, help="leave out tokens below p times the most likely one")
    add_option(sampling, "seed", type=int, help="same seed, same answer")
    add_option(sampling, "stop", action="append", metavar="TEXT", help="end at this text; may be repeated")
    add_option(sampling, "ignore_eos", action="store_true", help="go on after the end-of-sequence token")
    add_loading_options(parser)
    add_option(parser, "stats", action="store_true", help="print tokens per second at the end")


def add_loading_options(parser: argparse.ArgumentParser) -> None:
    loading = parser.add_argument_group("loading")
    add_option(loading, "threads", "num_threads", type=int, help="worker threads of a host engine")
    add_option(loading, "device", type=int, default=0, help="number of the GPU")
    add_option(loading, "kv_cache_tokens", type=int, help="size of the KV cache in tokens")
    add_option(loading, "free_memory_fraction", "kv_cache_free_gpu_memory_fraction", type=float,
               help="share of the free memory that the KV cache may take")  # fmt: skip


@contextlib.contextmanager
def loaded(arguments: argparse.Namespace) -> Iterator[LLM]:
    """The engine, closed at the end. What the runtime refuses comes out as CompileError."""
    with load(arguments.engine, arguments) as llm, user_errors():
        yield llm


def load(engine: Path, arguments: argparse.Namespace) -> LLM:
    """The engine with the options of add_loading_options; what the runtime refuses comes out as CompileError."""
    try:
        from llmc.runtime import LLM, KvCacheConfig
    except ImportError as error:
        raise CompileError(f"llmc was built without its runtime: {error}") from None
    kv_cache = KvCacheConfig(max_tokens=arguments.kv_cache_tokens, free_memory_fraction=arguments.free_memory_fraction)
    with user_errors():
        return LLM(engine, num_threads=arguments.threads, device=arguments.device, kv_cache_config=kv_cache)


@contextlib.contextmanager
def user_errors() -> Iterator[None]:
    """Errors of the runtime as errors of the command line."""
    from llmc.runtime import EngineError as RuntimeEngineError

    try:
        yield
    except RuntimeEngineError as error:
        raise EngineError(str(error)) from None
    except ValueError as error:  # SamplingParams, chat templates
        raise OptionError(str(error)) from None


def sampling_params(arguments: argparse.Namespace, llm: LLM) -> SamplingParams:
    """The options over the model's own defaults; greedy where neither says anything."""
    from llmc.runtime import SamplingParams

    recommended = llm.get_default_sampling_params()
    if recommended == SamplingParams():
        recommended = dataclasses.replace(recommended, temperature=0.0)
    chosen = {
        name: value
        for name in ("temperature", "top_k", "top_p", "min_p", "seed", "stop")
        if (value := getattr(arguments, name)) is not None
    }
    return dataclasses.replace(recommended, max_tokens=arguments.max_tokens, ignore_eos=arguments.ignore_eos, **chosen)


def print_stream(deltas: Iterable[CompletionDelta], stats: bool) -> str:
    """Prints text as it comes; returns all of it."""
    texts: list[str] = []
    tokens = 0
    start = time.perf_counter()
    first = start
    for delta in deltas:
        if not tokens:
            first = time.perf_counter()
        tokens += len(delta.token_ids)
        texts.append(delta.text)
        print(delta.text, end="", flush=True)
    print()
    if stats and tokens:
        decode = time.perf_counter() - first
        rate = f", then {(tokens - 1) / decode:.1f} tokens/s" if tokens > 1 and decode > 0 else ""
        print(f"{tokens} tokens: the first after {first - start:.2f} s{rate}", file=sys.stderr)
    return "".join(texts)
