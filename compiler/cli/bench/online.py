"""What `llmc bench serve` and `sweep` share: requests to a server with OpenAI's API."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmc.compiler.cli.arguments import add_option
from llmc.compiler.cli.bench.common import add_report_options, check_counts
from llmc.compiler.cli.bench.workloads import WORKLOAD_SETTINGS, Workload, add_workload_options, workloads
from llmc.errors import CompileError, OptionError

if TYPE_CHECKING:
    import aiohttp

    from llmc.compiler.benchmark.client import Target
    from llmc.compiler.benchmark.tokens import PromptTokenizer
    from llmc.compiler.benchmark.workload import WorkItem

SETTINGS = (*WORKLOAD_SETTINGS, "concurrency", "warmup", "endpoint", "timeout", "extra_body")
_WARM_UP_TOKENS = 8


def add_online_options(parser: argparse.ArgumentParser, num_requests: int, shapes: bool) -> None:
    parser.add_argument("url", nargs="?", metavar="URL", default="http://127.0.0.1:8000",
                        help="where it serves (default: %(default)s)")  # fmt: skip
    server = parser.add_argument_group("server")
    add_option(server, "model", metavar="NAME", help="name of the model, where the server has several")
    add_option(server, "endpoint", choices=["completions", "chat"], default="completions",
               help="completions take prompts as they are, chat puts each into a user's message")  # fmt: skip
    add_option(server, "api_key", metavar="KEY", help="where the server asks for one (also LLMC_API_KEY)")
    add_option(server, "tokenizer", type=Path, metavar="FILE",
               help="engine, folder or tokenizer.json of the model: to measure texts, for random chats")  # fmt: skip
    add_option(server, "vocab_size", type=int, metavar="N", help="random prompts take ids below it (default: asked)")
    add_option(server, "max_seq_len", "max-model-len", type=int, metavar="N",
               help="tokens of prompt and answer that the server takes (default: asked)")  # fmt: skip
    add_option(server, "extra_body", metavar="JSON", default="{}", help="further fields of each request")
    add_workload_options(parser, num_requests, shapes)
    group = parser.add_argument_group("running")
    add_option(group, "concurrency", "max-concurrency", type=int, metavar="N",
               help="requests at a time, whatever their arrival (default: all)")  # fmt: skip
    add_option(group, "timeout", type=float, default=600.0, metavar="SECONDS", help="an answer that takes longer fails")
    add_option(group, "warmup", "num-warmups", type=int, default=2, metavar="N",
               help="requests before the measurement, of the same lengths but with short answers")  # fmt: skip
    add_option(group, "gpu", type=int, metavar="N", help="watch this GPU, where the server runs on this machine")
    add_report_options(parser)


def check(arguments: argparse.Namespace) -> dict[str, Any]:
    """The fields of --extra_body. Raises OptionError."""
    check_counts(arguments, concurrency=1, warmup=0, vocab_size=1, max_seq_len=2)
    if not arguments.url.startswith(("http://", "https://")):
        raise OptionError(f"expected an address like http://127.0.0.1:8000, found {arguments.url}")
    if not 0 < arguments.timeout < float("inf"):
        raise OptionError(f"--timeout: expected positive seconds, found {arguments.timeout}")
    try:
        extra = json.loads(arguments.extra_body)
    except ValueError:
        extra = None
    if not isinstance(extra, dict):
        raise OptionError(f"--extra_body: expected a JSON object, found {arguments.extra_body!r}")
    return extra


@dataclasses.dataclass
class Session:
    """A server that answers, and the requests for it."""

    http: aiohttp.ClientSession
    target: Target
    workloads: list[Workload]
    vocab_size: int | None


@contextlib.asynccontextmanager
async def connected(arguments: argparse.Namespace) -> AsyncIterator[Session]:
    """Raises CompileError where there is no such server or model, or where requests do not fit it."""
    try:
        from llmc.compiler.benchmark.client import Target, find_dialect, find_model, session
        from llmc.compiler.benchmark.tokens import PromptTokenizer
    except ImportError as error:
        raise CompileError(f"llmc bench serve needs aiohttp and prometheus-client: {error}") from None
    extra = check(arguments)
    url = arguments.url.rstrip("/").removesuffix("/v1")
    key = arguments.api_key or os.environ.get("LLMC_API_KEY")
    tokenizer = PromptTokenizer(arguments.tokenizer) if arguments.tokenizer else None
    _more_open_files()
    async with session(key) as http:
        card = await find_model(http, url, arguments.model)
        vocab_size = arguments.vocab_size or card.get("vocab_size")
        if vocab_size is None and tokenizer is not None:
            vocab_size = tokenizer.vocab_size
        todo = workloads(arguments, vocab_size)
        most = arguments.max_seq_len or card.get("max_model_len")
        todo = [dataclasses.replace(one, items=_prepared(one.items, arguments, tokenizer, most)) for one in todo]
        target = Target(url, card["id"], arguments.endpoint, arguments.timeout, key, extra=extra)
        target = await find_dialect(http, target, [item for one in todo for item in one.items])
        yield Session(http, target, todo, vocab_size)


def _prepared(
    items: Sequence[WorkItem], arguments: argparse.Namespace, tokenizer: PromptTokenizer | None, most: int | None
) -> list[WorkItem]:
    """Prompts in the form that the endpoint takes, none longer than the server takes, where that can be told."""
    from llmc.compiler.benchmark.workload import fitted, tokenized

    if tokenizer is not None:
        items = tokenized(items, tokenizer.encode)
    measured = all(isinstance(item.prompt, list) for item in items)
    if measured and most is not None:
        items = fitted(items, most, arguments.too_long)
    elif arguments.too_long != "error":
        raise OptionError(
            f"--too_long {arguments.too_long}: expected lengths that can be told, found "
            + ("a server that does not tell its longest sequence: pass --max_seq_len" if measured else
               "prompts that are text: pass --tokenizer")
        )  # fmt: skip
    if arguments.endpoint == "completions":
        return list(items)
    if tokenizer is not None:
        return [_as_text(item, tokenizer) for item in items]
    if any(isinstance(item.prompt, list) for item in items):
        raise OptionError("--endpoint chat takes texts, found prompts of token ids: pass --tokenizer to decode them")
    return list(items)


def _as_text(item: WorkItem, tokenizer: PromptTokenizer) -> WorkItem:
    """A text of about as many tokens: what random ids decode to is often encoded otherwise."""
    assert isinstance(item.prompt, list)
    text = tokenizer.decode(item.prompt)
    again = tokenizer.encode(text, add_special_tokens=False)[: len(item.prompt)]
    return dataclasses.replace(item, prompt=tokenizer.decode(again) or text or "?")


def _more_open_files() -> None:
    """Each connection is one; the usual limit of 1,024 is for programs of another kind."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def warm_up(session: Session, items: Sequence[WorkItem], arguments: argparse.Namespace) -> None:
    """Requests of the same lengths; other prompts, so that a cache does not find the measured ones."""
    from llmc.compiler.benchmark.client import ask
    from llmc.compiler.benchmark.online import run_online
    from llmc.compiler.benchmark.workload import random_tokens

    rng = random.Random(arguments.seed + 1)
    chosen = [
        dataclasses.replace(
            item,
            prompt=random_tokens(rng, len(item.prompt), session.vocab_size)
            if isinstance(item.prompt, list) and session.vocab_size
            else item.prompt,
            output_tokens=min(item.output_tokens, _WARM_UP_TOKENS),
            arrival=None,
        )
        for item in items[: arguments.warmup]
    ]
    if chosen:
        await run_online(lambda *one: ask(session.http, session.target, *one), chosen,
                         concurrency=arguments.concurrency)  # fmt: skip


async def measure(
    session: Session,
    name: str,
    items: Sequence[WorkItem],
    arguments: argparse.Namespace,
    objectives: Mapping[str, float],
) -> dict[str, Any]:
    """One run of a report."""
    from llmc.compiler.benchmark.client import ask
    from llmc.compiler.benchmark.online import run_online
    from llmc.compiler.benchmark.server_watch import server_watch
    from llmc.compiler.benchmark.summary import spread, summarize
    from llmc.compiler.benchmark.watch import gpu_watch
    from llmc.compiler.cli.console import make_progress

    with make_progress(arguments.quiet).task(name, len(items)) as advance, gpu_watch(arguments.gpu) as gpu:
        async with server_watch(session.http, session.target.url, session.target.model) as engine:
            records, seconds = await run_online(
                lambda *one: ask(session.http, session.target, *one),
                items,
                concurrency=arguments.concurrency,
                on_finish=lambda record: advance(1),
            )
    figures = summarize(records, seconds, objectives)
    late = spread([record.late for record in records if record.sent])
    return {"name": name, "figures": figures, "late": late, "engine": engine, "gpu": gpu}
