"""What `llmc bench throughput` and `latency` share: requests on an engine in this process."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmc.compiler.cli.arguments import add_option
from llmc.compiler.cli.bench.common import add_report_options, check_counts, settings
from llmc.compiler.cli.bench.plotting import write_plot
from llmc.compiler.cli.bench.workloads import WORKLOAD_SETTINGS, Workload, add_workload_options, workloads
from llmc.compiler.cli.generation import add_loading_options, user_errors
from llmc.errors import CompileError

if TYPE_CHECKING:
    from llmc.runtime import Engine

_WARM_UP_TOKENS = 8


def add_offline_options(parser: argparse.ArgumentParser, num_requests: int, concurrency: int | None) -> None:
    parser.add_argument("engine", metavar="ENGINE", type=Path, help="engine folder or .llmc file")
    add_workload_options(parser, num_requests)
    group = parser.add_argument_group("running")
    add_option(group, "concurrency", "max-concurrency", type=int, default=concurrency, metavar="N",
               help="requests at a time" + ("" if concurrency else " (default: all)"))  # fmt: skip
    add_option(group, "warmup", "num-warmups", type=int, default=2, metavar="N",
               help="requests before the measurement, of the same lengths but with short answers")  # fmt: skip
    add_option(group, "goodput", nargs="+", default=[], metavar="NAME:MS",
               help="count requests below these latencies: ttft:500 tpot:50 itl:100 e2e:5000")  # fmt: skip
    add_loading_options(parser)
    engine = parser.add_argument_group("engine")
    add_option(
        engine, "max_batch_size", "max-num-seqs", type=int, help="sequences of one step, below the compiled limit"
    )
    add_option(engine, "max_num_tokens", "max-num-batched-tokens", type=int,
               help="tokens of one step, below the compiled limit")  # fmt: skip
    add_option(engine, "policy", choices=["guaranteed_no_evict", "max_utilization", "static_batch"],
               default="guaranteed_no_evict", help="how requests are started")  # fmt: skip
    add_option(engine, "block_reuse", choices=["auto", "on", "off"], default="auto",
               help="share KV blocks of equal beginnings; auto: off for random prompts")  # fmt: skip
    add_report_options(parser)


def run_offline_kind(kind: str, arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from llmc.compiler.benchmark.report import report, write_json
    from llmc.compiler.benchmark.summary import parse_objectives
    from llmc.compiler.benchmark.tables import run_tables

    check_counts(arguments, concurrency=1, warmup=0)
    objectives = parse_objectives(arguments.goodput)
    made = report(kind, arguments.engine, settings=settings(arguments, _SETTINGS))
    vocab_size = _vocab_size(arguments.engine)
    todo = workloads(arguments, vocab_size)
    console = Console()
    with user_errors(), _loaded(arguments, reuse=any(one.repeats_prompts for one in todo)) as engine:
        for workload in todo:
            run = _measure(engine, workload, arguments, objectives)
            made["runs"].append(run)
            console.print(run_tables(run))
    if arguments.json:
        write_json(arguments.json, made)
    write_plot(arguments.plot, [made])
    return 0


def _vocab_size(path: Path) -> int:
    from llmc.compiler.engine import Engine

    return int(Engine(path).manifest["model"]["vocab_size"])


@contextlib.contextmanager
def _loaded(arguments: argparse.Namespace, reuse: bool) -> Iterator[Engine]:
    try:
        from llmc.runtime import KvCacheConfig, SchedulerConfig, load_engine
    except ImportError as error:
        raise CompileError(f"llmc was built without its runtime: {error}") from None
    kv_cache = KvCacheConfig(
        max_tokens=arguments.kv_cache_tokens,
        free_memory_fraction=arguments.free_memory_fraction,
        enable_block_reuse=reuse if arguments.block_reuse == "auto" else arguments.block_reuse == "on",
    )
    scheduler = SchedulerConfig(
        max_batch_size=arguments.max_batch_size, max_num_tokens=arguments.max_num_tokens, policy=arguments.policy
    )
    with load_engine(
        arguments.engine,
        num_threads=arguments.threads,
        device=arguments.device,
        kv_cache_config=kv_cache,
        scheduler_config=scheduler,
    ) as engine:
        yield engine


def _measure(
    engine: Engine, workload: Workload, arguments: argparse.Namespace, objectives: dict[str, float]
) -> dict[str, Any]:
    from llmc.compiler.benchmark.offline import run_offline
    from llmc.compiler.benchmark.summary import summarize
    from llmc.compiler.benchmark.watch import EngineWatch, gpu_watch
    from llmc.compiler.benchmark.workload import fitted, random_tokens, tokenized
    from llmc.compiler.cli.console import make_progress

    items = workload.items
    if any(isinstance(item.prompt, str) for item in items):
        items = tokenized(items, engine.tokenizer.encode)
    items = fitted(items, int(engine.info["max_seq_len"]), arguments.too_long)
    # Not the prompts themselves: a cache would find them.
    rng = random.Random(arguments.seed + 1)
    warm_up = [
        dataclasses.replace(
            item,
            prompt=random_tokens(rng, len(item.prompt), int(engine.info["vocab_size"])),
            output_tokens=min(item.output_tokens, _WARM_UP_TOKENS),
        )
        for item in items[: arguments.warmup]
    ]
    run_offline(engine, warm_up, concurrency=arguments.concurrency)
    watch = EngineWatch(lambda: engine.stats)
    device = None if engine.info["target"] == "host" else arguments.device
    with (
        make_progress(arguments.quiet).task(workload.name, len(items)) as advance,
        gpu_watch(device) as gpu,
    ):
        records, seconds = run_offline(
            engine,
            items,
            concurrency=arguments.concurrency,
            on_finish=lambda record: advance(1),
            observe=watch.look,
        )
    figures = summarize(records, seconds, objectives)
    return {"name": workload.name, "figures": figures, "engine": watch.summary(), "gpu": gpu}


_SETTINGS = (
    *WORKLOAD_SETTINGS, "concurrency", "warmup", "threads", "kv_cache_tokens", "free_memory_fraction",
    "max_batch_size", "max_num_tokens", "policy", "block_reuse",
)  # fmt: skip
