"""Watches the engines of a running `llmc serve`: its /stats, once a second, until Ctrl-C."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llmc.compiler.cli.arguments import add_option
from llmc.errors import CompileError, OptionError

if TYPE_CHECKING:
    from rich.table import Table

Stats = Mapping[str, Any]  # one engine's part of /stats


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "url", nargs="?", default="http://127.0.0.1:8000", help="where it serves (default: %(default)s)"
    )
    add_option(parser, "interval", type=float, default=1.0, metavar="SECONDS", help="between two looks")
    add_option(parser, "count", type=int, default=0, metavar="N", help="looks after which to end; 0: until Ctrl-C")
    add_option(parser, "api_key", metavar="KEY", help="where the server asks for one (also LLMC_API_KEY)")


def run(arguments: argparse.Namespace) -> int:
    if not arguments.url.startswith(("http://", "https://")):
        raise OptionError(f"expected an address like http://127.0.0.1:8000, found {arguments.url}")
    if not 0 < arguments.interval < 1e6:
        raise OptionError(f"--interval: expected positive seconds, found {arguments.interval}")
    if arguments.count < 0:
        raise OptionError(f"--count: expected 0 or more, found {arguments.count}")
    from rich.console import Console
    from rich.live import Live

    key = arguments.api_key or os.environ.get("LLMC_API_KEY")
    console = Console()
    before, then = read_stats(arguments.url, key), time.monotonic()
    looks = 0
    with Live(console=console, auto_refresh=False, screen=False) as live:
        while arguments.count == 0 or looks < arguments.count:
            time.sleep(arguments.interval)
            now, moment = read_stats(arguments.url, key), time.monotonic()
            live.update(_table(before, now, moment - then), refresh=True)
            before, then = now, moment
            looks += 1
    return 0


def read_stats(url: str, key: str | None) -> dict[str, Stats]:
    """Model name -> statistics."""
    request = urllib.request.Request(url.rstrip("/") + "/stats")
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            found = json.load(answer)
    except urllib.error.HTTPError as error:
        what = "it asks for an API key: pass --api_key" if error.code == 401 else f"status {error.code}"
        raise CompileError(f"{url}/stats: {what}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise CompileError(f"{url}/stats: {reason}. Expected a running `llmc serve` there") from None
    if not isinstance(found, dict) or not all("histograms" in one for one in found.values()):
        raise CompileError(f"{url}/stats: not the statistics of an `llmc serve` of this version")
    return found


def rows(before: Stats, now: Stats, seconds: float) -> list[tuple[str, str]]:
    """(name, value) of what an engine did in the `seconds` between two looks."""
    from llmc.runtime.histogram import Histogram

    def rate(key: str) -> float:
        return (now[key] - before[key]) / seconds

    def share(part: float, whole: float) -> str:
        return f"{100 * part / whole:.1f} %" if whole else "-"

    def spread(name: str) -> str:
        new, old = (Histogram(one["histograms"][name]["sum"], [tuple(b) for b in one["histograms"][name]["buckets"]])
                    for one in (now, before))  # fmt: skip
        seen = new.since(old)
        return f"{_time(seen.quantile(0.5))} / {_time(seen.quantile(0.99))}" if seen.count else "-"

    def change(key: str) -> float:
        return float(now[key] - before[key])

    return [
        ("health", now["health"] or "ok"),
        ("requests running, waiting", f"{now['num_running']}, {now['num_waiting']}"),
        ("tokens/s generated, prompt", f"{rate('num_generated_tokens'):,.0f}, {rate('num_prompt_tokens'):,.0f}"),
        ("KV blocks used, reusable", f"{share(now['blocks_used'], now['blocks_total'])}, "
                                     f"{share(now['blocks_idle'], now['blocks_total'])}"),
        ("prompt found in the cache", share(change("num_reused_tokens"), change("num_looked_up_tokens"))),
        ("steps/s", f"{rate('num_steps'):,.1f}"),
        ("step, half / 99 % below", spread("step_seconds")),
        ("host's work for a step", spread("host_step_seconds")),
        ("host's share of step time", share(change("host_seconds"), change("step_seconds"))),
        ("time in the queue", spread("queue_seconds")),
        ("time to the first token", spread("time_to_first_token_seconds")),
        ("token to token", spread("inter_token_seconds")),
        ("preemptions, evictions", f"{now['num_preemptions']}, {now['num_evictions']}"),
        ("failed steps, deadlines missed", f"{now['num_failed_steps']}, {now['num_deadlines_missed']}"),
    ]  # fmt: skip


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def _table(before: dict[str, Stats], now: dict[str, Stats], seconds: float) -> Table:
    from rich.table import Table

    table = Table()
    table.add_column("")
    columns = []
    for name, stats in now.items():
        table.add_column(name, justify="right")
        columns.append(rows(before.get(name, stats), stats, seconds))
    for lines in zip(*columns, strict=True):
        table.add_row(lines[0][0], *(value for _, value in lines))
    return table
