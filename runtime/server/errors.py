"""Errors in the shape that OpenAI's clients read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Match

from llmc.runtime.errors import DeviceError, EngineError, InvalidArgumentError, RequestRefusedError

_TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 503: "unavailable_error"}
_UNION_MEMBER = re.compile(r"str|int|(constrained|list)\b.*|[A-Z]\w*")


class ApiError(Exception):
    """An answer with an error in it; `param` names the field that is wrong."""

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code

    def body(self) -> dict[str, Any]:
        kind = _TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    def response(self, headers: Mapping[str, str] | None = None) -> JSONResponse:
        if self.status in (429, 503):
            headers = {"Retry-After": "1"}
        return JSONResponse(self.body(), self.status, headers)


class ErrorFields(BaseModel):
    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(BaseModel):
    error: ErrorFields


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Answers of a path for its OpenAPI description, beside those that every path can give."""
    return {status: {"model": ErrorBody} for status in (*statuses, 401, 405)}


def as_api_error(error: Exception) -> ApiError:
    """What a failure inside a completion means to its caller."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, RequestRefusedError):
        return ApiError(400, str(error), code="context_length_exceeded")
    if isinstance(error, (InvalidArgumentError, ValueError)):
        return ApiError(400, str(error))
    if isinstance(error, DeviceError):
        return ApiError(500, f"the device failed: {error}", code="device_error")
    if isinstance(error, EngineError):
        return ApiError(500, str(error))
    return ApiError(500, f"{type(error).__name__}: {error}", code="internal_error")


def describe(error: RequestValidationError) -> ApiError:
    """The first thing that is wrong with a body, with its place."""
    # Of the members of a union all complain: the one that came furthest, and not about the type, is meant.
    found = error.errors()
    first = max(found, key=lambda one: (not one["type"].endswith("_type"), len(one["loc"])))
    place = [str(part) for part in first["loc"] if part != "body" and not _UNION_MEMBER.fullmatch(str(part))]
    param = ".".join(place) or None
    more = len({one["loc"][:2] for one in found}) - 1
    message = f"{param or 'body'}: {first['msg']}{_found(first['input'])}"
    if first["type"] == "extra_forbidden":
        message = f"unknown field '{param}'"
    elif first["type"] == "json_invalid":
        param = None
        message = f"the body is no JSON: {first.get('ctx', {}).get('error', first['msg'])}"
    if more > 0:
        message += f" (and {more} more)"
    return ApiError(400, message, param=param)


def _found(value: Any) -> str:
    """What was there instead, where it is short."""
    if isinstance(value, dict):
        value = value.get("type")
    if not isinstance(value, (str, int, float)):
        return ""
    text = repr(value)
    return f", found {text if len(text) <= 60 else text[:60] + '...'}"


def _methods(request: Request) -> list[str]:
    """All that this path takes: Starlette tells those of one handler."""
    routes = (route for route in request.app.routes if route.matches(request.scope)[0] != Match.NONE)
    return sorted({method for route in routes for method in getattr(route, "methods", None) or ()})


def install(app: FastAPI) -> None:
    @app.exception_handler(ApiError)
    async def _api(_: Request, error: ApiError) -> JSONResponse:
        return error.response()

    @app.exception_handler(RequestValidationError)
    async def _validation(_: Request, error: RequestValidationError) -> JSONResponse:
        return describe(error).response()

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> JSONResponse:
        message = str(error.detail)
        if error.status_code == 404:
            message = f"there is no {request.url.path} here: the API is under /v1"
        elif error.status_code == 405:
            message = f"{request.url.path} does not take {request.method}"
            return ApiError(405, message).response({"Allow": ", ".join(_methods(request))})
        return ApiError(error.status_code, message).response(error.headers)

    @app.exception_handler(Exception)
    async def _bug(_: Request, error: Exception) -> JSONResponse:
        return as_api_error(error).response()  # the traceback goes to the log

    @app.exception_handler(EngineError)
    @app.exception_handler(ValueError)
    async def _engine(_: Request, error: Exception) -> JSONResponse:
        return as_api_error(error).response()
