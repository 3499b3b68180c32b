"""Finds the highest rate of requests at which a server keeps latency limits, by runs at different rates."""

from __future__ import annotations

import argparse
import asyncio
import math
import random
from typing import Any

from llmc.compiler.cli.arguments import add_option
from llmc.compiler.cli.bench.common import check_counts, settings
from llmc.compiler.cli.bench.online import SETTINGS, add_online_options, check, connected, measure, warm_up
from llmc.compiler.cli.bench.plotting import write_plot
from llmc.errors import OptionError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_online_options(parser, num_requests=200, shapes=False)
    group = parser.add_argument_group("search")
    add_option(group, "limit", "goodput", nargs="+", default=["ttft:1000"], metavar="NAME:MS",
               help="latencies to keep, in ms: ttft:500 tpot:50 itl:100 e2e:5000 (default ttft:1000)")  # fmt: skip
    add_option(group, "percentile", choices=["p50", "p90", "p99", "max"], default="p99",
               help="which part of the requests must keep them")  # fmt: skip
    add_option(group, "start_rate", type=float, default=1.0, metavar="R", help="requests/s of the first run")
    add_option(group, "tolerance", type=float, default=0.05, metavar="X", help="end at this relative distance")
    add_option(group, "most_runs", type=int, default=12, metavar="N", help="end after this many runs")


def run(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from llmc.compiler.benchmark.arrivals import at_rate
    from llmc.compiler.benchmark.report import report, write_json
    from llmc.compiler.benchmark.summary import parse_objectives
    from llmc.compiler.benchmark.sweep import find_rate, missed

    check(arguments)
    _check(arguments)
    limits = parse_objectives(arguments.limit, "--limit")
    made = report("sweep", settings=settings(arguments, (*SETTINGS, "limit", "percentile", "tolerance")))
    console = Console()

    async def search() -> float | None:
        async with connected(arguments) as session:
            made["server"] = {"model": session.target.model, "dialect": session.target.dialect}
            [workload] = session.workloads
            await warm_up(session, workload.items, arguments)

            async def attempt(rate: float) -> str:
                # The same gaps at every rate, stretched: rates differ, luck does not.
                rng = random.Random(f"arrivals {arguments.seed}")
                items = at_rate(workload.items, rate, rng, arguments.burstiness)
                name = f"{workload.name} at {rate:.4g}/s"
                found: dict[str, Any] = await measure(session, name, items, arguments, limits)
                why = missed(found["figures"], limits, arguments.percentile)
                made["runs"].append({**found, "rate": rate, "missed": why})
                console.print(f"{rate:10.4g} requests/s: {why or 'kept'}", highlight=False)
                return why

            return await find_rate(attempt, arguments.start_rate, arguments.tolerance, arguments.most_runs)

    best = asyncio.run(search())
    made["highest_rate"] = best
    said = ", ".join(f"{name} {arguments.percentile} < {1e3 * limit:g} ms" for name, limit in limits.items())
    console.print(f"highest rate with {said}: " + (f"{best:.4g} requests/s" if best else "none"), highlight=False)
    if arguments.json:
        write_json(arguments.json, made)
    write_plot(arguments.plot, [made])
    return 0


def _check(arguments: argparse.Namespace) -> None:
    check_counts(arguments, most_runs=1)
    if arguments.request_rate is not None:
        raise OptionError("--request_rate: the sweep chooses the rates, found one; --start_rate says where it begins")
    for name, low, high in (("start_rate", 0, math.inf), ("tolerance", 0, 1)):
        if not low < (value := getattr(arguments, name)) < high:
            raise OptionError(f"--{name}: expected a number above {low} and below {high}, found {value}")
