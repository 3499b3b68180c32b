"""Puts the server together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.openapi.utils import get_openapi

import llmc
from llmc.server import chat, completions, errors, operations, page, tokenization
from llmc.server.admission import Admission
from llmc.server.config import ServerConfig
from llmc.server.metrics import RequestMetrics
from llmc.server.middleware import ApiKeys, BodyLimit, RequestLog
from llmc.server.models import Models
from llmc.server.responses import routes as responses
from llmc.server.responses.store import ResponseStore
from llmc.server.state import ServerState


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document; FastAPI assumes 422 for what is 400 here."""
    if app.openapi_schema is None:
        app.openapi_schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        for path in app.openapi_schema["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
    return app.openapi_schema


def create_app(models: Models, config: ServerConfig | None = None) -> FastAPI:
    """An ASGI application over loaded engines. It does not close them."""
    config = config or ServerConfig()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        app.state.llmc.admission.draining = True
        await asyncio.to_thread(models.close_streams)

    docs = "/docs" if config.expose_docs else None
    app = FastAPI(title="llmc", version=llmc.__version__, lifespan=lifespan, docs_url=docs, redoc_url=None)
    app.state.llmc = ServerState(
        config,
        models,
        Admission(config.max_requests),
        RequestMetrics(models),
        ResponseStore(config.response_store_bytes),
    )
    errors.install(app)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    for part in (completions, chat, responses, tokenization, operations, page):
        app.include_router(part.router)
    # The last one added sees a request first.
    app.add_middleware(BodyLimit, limit=config.max_body_bytes)
    if config.api_keys:
        app.add_middleware(ApiKeys, keys=config.api_keys)
    if config.allowed_origins:
        app.add_middleware(CORSMiddleware, allow_origins=list(config.allowed_origins), allow_methods=["*"],
                           allow_headers=["*"], expose_headers=["X-Request-Id"])  # fmt: skip
    app.add_middleware(RequestLog)
    return app
