"""A client of servers with OpenAI's API, made to put load on them."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import aiohttp

from llmc.compiler.benchmark.answer import Answer
from llmc.compiler.benchmark.records import Record
from llmc.compiler.benchmark.sse import EventParser
from llmc.compiler.benchmark.workload import WorkItem
from llmc.errors import CompileError, OptionError

Endpoint = Literal["completions", "chat"]
PATHS: Mapping[Endpoint, str] = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}

#: What to ask for beyond OpenAI's fields, from the most telling to the plainest; servers refuse what they do not know.
DIALECTS: Mapping[str, Mapping[str, Any]] = {
    "usage with every event": {
        "ignore_eos": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    },
    "usage at the end": {"ignore_eos": True, "stream_options": {"include_usage": True}},
    "usage at the end, answers end by themselves": {"stream_options": {"include_usage": True}},
    "no usage, answers end by themselves": {},
}


@dataclass(frozen=True)
class Target:
    """Where requests go, and what all have in common."""

    url: str  #: without /v1
    model: str
    endpoint: Endpoint = "completions"
    timeout: float = 600.0  #: seconds that a whole answer may take
    api_key: str | None = None
    dialect: str = "usage with every event"
    extra: Mapping[str, Any] = field(default_factory=dict)  #: further fields of each request

    def body(self, item: WorkItem) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "max_tokens": item.output_tokens, "stream": True, "temperature": 0}
        if self.endpoint == "chat":
            body["messages"] = [{"role": "user", "content": item.prompt}]
        else:
            body["prompt"] = item.prompt
        return body | dict(DIALECTS[self.dialect]) | dict(self.extra)


def session(api_key: str | None) -> aiohttp.ClientSession:
    """With as many connections as it takes."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=headers, read_bufsize=1 << 18)


async def ask(
    http: aiohttp.ClientSession, target: Target, item: WorkItem, record: Record, clock: Callable[[], float]
) -> None:
    """Sends one request and fills its record. Failures end up in the record, never as an exception."""
    answer = Answer(record)
    timeout = aiohttp.ClientTimeout(total=target.timeout)
    record.sent = clock()
    try:
        async with http.post(target.url + PATHS[target.endpoint], json=target.body(item), timeout=timeout) as response:
            if response.status != 200:
                record.fail(f"status {response.status}", error_message(await response.text(errors="replace")))
                return
            if not response.content_type.startswith("text/event-stream"):
                record.fail("no stream", f"expected text/event-stream, found {response.content_type}")
                return
            parser = EventParser()
            async for chunk in response.content.iter_any():
                now = clock()
                for data in parser.feed(chunk):
                    answer.take(data, now)
                if answer.done or record.error:
                    break
    except asyncio.TimeoutError:
        record.fail(f"timeout after {target.timeout:g} s", f"{record.output_tokens} tokens had come")
    except aiohttp.ClientConnectorError as error:
        record.fail("cannot connect", error)
    except aiohttp.ClientError as error:
        record.fail("connection lost", f"{type(error).__name__}: {error}")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        record.fail("answer not understood", f"{type(error).__name__}: {error}")
    finally:
        answer.end(clock())


def error_message(text: str) -> str:
    """What OpenAI's error object says; else the text."""
    try:
        error = json.loads(text)["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError):
        return text.strip()


async def get_json(http: aiohttp.ClientSession, url: str) -> Any:
    """Raises CompileError that says what is wrong with the server."""
    try:
        async with http.get(url, timeout=aiohttp.ClientTimeout(total=30)) as response:
            text = await response.text(errors="replace")
            if response.status == 401:
                raise CompileError(f"{url}: it asks for an API key: pass --api_key")
            if response.status != 200:
                raise CompileError(f"{url}: expected status 200, found {response.status}: {error_message(text)}")
            return json.loads(text)
    except (aiohttp.ClientError, asyncio.TimeoutError, ValueError) as error:
        raise CompileError(
            f"{url}: {error or type(error).__name__}. Expected a running server with OpenAI's API there"
        ) from None


async def find_model(http: aiohttp.ClientSession, url: str, name: str | None) -> dict[str, Any]:
    """The server's card of the model; of its only one where no name is given."""
    listed = await get_json(http, f"{url}/v1/models")
    cards = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(cards, list) or not all(isinstance(card, dict) and "id" in card for card in cards):
        raise CompileError(f"{url}/v1/models: expected a list of models, found {str(listed)[:100]}")
    known = ", ".join(str(card["id"]) for card in cards) or "none"
    if name is None:
        if len(cards) != 1:
            raise OptionError(f"--model: expected one of those that {url} serves, found none given; it has {known}")
        return dict(cards[0])
    for card in cards:
        if card["id"] == name:
            return dict(card)
    raise OptionError(f"--model: expected one of those that {url} serves ({known}), found {name}")


async def find_dialect(http: aiohttp.ClientSession, target: Target, items: Sequence[WorkItem]) -> Target:
    """The target with the most telling dialect that the server takes, found with a short request.

    Raises CompileError with what the server said where it takes none.
    """
    shortest = dataclasses.replace(min(items, key=lambda item: len(item.prompt)), output_tokens=2)
    said = []
    for dialect in DIALECTS:
        candidate = dataclasses.replace(target, dialect=dialect)
        record = Record(0)
        await ask(http, candidate, shortest, record, asyncio.get_running_loop().time)
        if record.error is None:
            return candidate
        said.append(f"{record.error}: {record.detail}")
        if record.error not in ("status 400", "status 422"):
            break
    raise CompileError(f"{target.url}{PATHS[target.endpoint]}: expected a streamed answer, found {said[-1]}")
