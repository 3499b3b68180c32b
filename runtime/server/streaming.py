"""Answers that notice when nobody listens any more."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from llmc.server.errors import ApiError, as_api_error

T = TypeVar("T")
DONE = b"data: [DONE]\n\n"


def as_json(body: BaseModel) -> dict[str, Any]:
    """Without what says nothing; but clients look at these two of a choice even when they are null."""
    answer = body.model_dump(exclude_none=True)
    for choice in answer.get("choices", ()):
        choice.setdefault("finish_reason", None)
        choice.setdefault("logprobs", None)
        if "message" in choice:
            choice["message"].setdefault("content", None)
    return answer


def event(body: BaseModel) -> bytes:
    return b"data: " + json.dumps(as_json(body), ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def text_events(made: Callable[[str], BaseModel]) -> Callable[[str], bytes]:
    """`event(made(text))` of one text after the other, where nothing but the text differs: what is around it
    is made once, because a stream sends it with every token."""
    mark = uuid.uuid4().hex
    before, after = event(made(mark)).split(json.dumps(mark).encode())
    return lambda text: before + json.dumps(text, ensure_ascii=False).encode() + after


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_disconnected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work; when the client goes away first, the work is cancelled at once."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request.receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ApiError(499, "the client has gone")
    finally:
        for one in (task, gone):
            one.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


class EventStream(Response):
    """Server-sent events from an iterator that is closed as soon as the client disconnects.

    An error before the first event gives an ordinary error answer; a later one becomes an event with
    an `error` in it, then the stream ends.
    """

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes, None], last: bytes = DONE) -> None:
        self.events, self.last = events, last
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(scope, receive, send))
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            for one in (sending, gone):
                one.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)
            await self.events.aclose()

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            first = await anext(self.events, None)
        except Exception as error:
            await as_api_error(error).response()(scope, receive, send)
            return
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

        async def body(data: bytes, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": more})

        if first is not None:
            await body(first)
        try:
            async for data in self.events:
                await body(data)
        except Exception as error:
            await body(b"data: " + json.dumps(as_api_error(error).body()).encode() + b"\n\n")
        await body(self.last, more=False)


async def merged(sources: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[tuple[int, T], None]:
    """What the sources yield, with the number of the source, as it comes. Closes them at the end."""
    if len(sources) == 1:
        async with contextlib.aclosing(sources[0]) as source:
            async for one in source:
                yield 0, one
        return
    queue: asyncio.Queue[tuple[int, T] | Exception | None] = asyncio.Queue()

    async def drain(index: int, source: AsyncGenerator[T, None]) -> None:
        try:
            async with contextlib.aclosing(source):
                async for one in source:
                    queue.put_nowait((index, one))
            queue.put_nowait(None)
        except Exception as error:
            queue.put_nowait(error)

    tasks = [asyncio.ensure_future(drain(i, source)) for i, source in enumerate(sources)]
    try:
        left = len(tasks)
        while left:
            found = await queue.get()
            if found is None:
                left -= 1
            elif isinstance(found, Exception):
                raise found
            else:
                yield found
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
