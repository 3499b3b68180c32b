"""What every request passes: an id, a log line, the key, the limit of its body. Pure ASGI, so that bodies stream."""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import re
import time
import uuid
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from llmc.server.errors import ApiError

log = logging.getLogger("llmc.server")
_OPEN_PATHS = ("/", "/health", "/version", "/metrics", "/metrics/vllm", "/openapi.json", "/docs")
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")


def _is_open(path: str) -> bool:
    return path in _OPEN_PATHS or path.startswith("/page/")


class RequestLog:
    """Gives a request its id (the caller's X-Request-Id, or a new one) and writes one JSON line when it has ended."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        state["log"] = facts = {"request_id": request_id, "method": scope["method"], "path": scope["path"]}
        start = time.perf_counter()

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                facts["status"] = message["status"]
                message["headers"] = [*message.get("headers", []), (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self.app(scope, receive, sending)
        finally:
            facts["seconds"] = round(time.perf_counter() - start, 4)
            quiet = _is_open(scope["path"]) or scope["path"] == "/stats"
            log.log(logging.DEBUG if quiet else logging.INFO, "%s", json.dumps(facts))


class ApiKeys:
    """401 for everything but health, version and metrics without one of the keys in `Authorization: Bearer`."""

    def __init__(self, app: ASGIApp, keys: Sequence[str]) -> None:
        self.app = app
        self.keys = [key.encode() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _is_open(scope["path"]) and scope["method"] != "OPTIONS":
            scheme, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
            # All are compared, and in constant time: an answer's time tells nothing about a key.
            known = [hmac.compare_digest(key.strip().encode(), one) for one in self.keys]
            if scheme.lower() != "bearer" or not any(known):
                found = "a key that is not known here" if key else "no key"
                error = ApiError(401, f"expected an API key in 'Authorization: Bearer KEY', found {found}",
                                 code="invalid_api_key")  # fmt: skip
                await error.response()(scope, receive, send)
                return
        await self.app(scope, receive, send)


class _TooLarge(Exception):
    pass


class BodyLimit:
    """413 for bodies above the limit: at once where the length is announced, else as soon as it is passed."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self.app, self.limit = app, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdecimal() and int(announced) > self.limit:
            await self._refuse(f"{announced} bytes")(scope, receive, send)
            return
        seen = 0
        started = False

        async def receiving() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.limit:
                raise _TooLarge
            return message

        async def sending(message: Message) -> None:
            nonlocal started
            if seen > self.limit and not started:
                return  # what the application makes of the exception: ours is more exact
            started = True
            await send(message)

        with contextlib.suppress(_TooLarge):
            await self.app(scope, receiving, sending)
        if seen > self.limit and not started:
            await self._refuse(f"more than {self.limit} bytes")(scope, receive, send)

    def _refuse(self, found: str) -> Response:
        return ApiError(413, f"the body may have {self.limit} bytes, found {found}: "
                             "send less, or start the server with a larger --max_body_bytes").response()  # fmt: skip
