"""Puts load on a server with OpenAI's API, ours or another, and measures what its clients see."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from llmc.compiler.cli.arguments import add_option
from llmc.compiler.cli.bench.common import settings
from llmc.compiler.cli.bench.online import SETTINGS, add_online_options, check, connected, measure, warm_up
from llmc.compiler.cli.bench.plotting import write_plot


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_online_options(parser, num_requests=100, shapes=True)
    add_option(parser, "goodput", nargs="+", default=[], metavar="NAME:MS",
               help="count requests below these latencies: ttft:500 tpot:50 itl:100 e2e:5000")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from llmc.compiler.benchmark.report import report, write_json
    from llmc.compiler.benchmark.summary import parse_objectives
    from llmc.compiler.benchmark.tables import run_tables

    check(arguments)
    objectives = parse_objectives(arguments.goodput)
    made = report("serve", settings=settings(arguments, SETTINGS))
    console = Console()

    async def all_runs() -> None:
        async with connected(arguments) as session:
            made["server"] = {"model": session.target.model, "dialect": session.target.dialect}
            for workload in session.workloads:
                await warm_up(session, workload.items, arguments)
                found: dict[str, Any] = await measure(session, workload.name, workload.items, arguments, objectives)
                made["runs"].append(found)
                console.print(run_tables(found))

    asyncio.run(all_runs())
    if arguments.json:
        write_json(arguments.json, made)
    write_plot(arguments.plot, [made])
    return 0
