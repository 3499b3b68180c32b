"""What operators ask: /health, /version, /metrics, and the list of models."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.responses import Response

import llmc
from llmc.server.errors import documented
from llmc.server.models import ServedModel
from llmc.server.state import state_of

router = APIRouter()
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/health", responses={503: {}, **documented()})
async def health(request: Request) -> Response:
    """200 while every engine computes; 503 with the reason while one does not, or while the server drains."""
    state = state_of(request)
    models = {model.name: model.health or "ok" for model in state.models}
    sick = state.admission.draining or any(what != "ok" for what in models.values())
    what = "draining" if state.admission.draining else "unhealthy" if sick else "ok"
    return JSONResponse({"status": what, "models": models}, 503 if sick else 200)


@router.get("/version", responses=documented())
async def version() -> dict[str, str]:
    return {"version": llmc.__version__}


@router.get("/metrics", response_class=PlainTextResponse, responses=documented())
async def metrics(request: Request) -> Response:
    """Prometheus text."""
    return Response(state_of(request).metrics.text(), media_type=_PROMETHEUS)


@router.get("/metrics/vllm", response_class=PlainTextResponse, responses=documented())
async def vllm_metrics(request: Request) -> Response:
    """The same under vLLM's names, for its dashboards."""
    return Response(state_of(request).metrics.vllm_text(), media_type=_PROMETHEUS)


@router.get("/stats", responses=documented())
async def stats(request: Request) -> dict[str, dict[str, Any]]:
    """Each engine's counters since load, as llmc_engine_stats in llmc.h has them; durations in buckets of
    [upper bound in seconds, count]; why it serves no requests, or ""."""
    return {
        model.name: model.llm.stats
        | {"health": model.health, "histograms": {k: asdict(v) for k, v in model.llm.histograms.items()}}
        for model in state_of(request).models
    }


@router.get("/v1/models", responses=documented())
async def models(request: Request) -> dict[str, Any]:
    return {"object": "list", "data": [_card(model) for model in state_of(request).models]}


@router.get("/v1/models/{name:path}", responses=documented(404))
async def model(name: str, request: Request) -> dict[str, Any]:
    return _card(state_of(request).models.get(name))


def _card(model: ServedModel) -> dict[str, Any]:
    return {
        "id": model.name,
        "object": "model",
        "created": model.created,
        "owned_by": "llmc",
        "root": str(model.llm.info["model_name"]),
        "max_model_len": model.max_length,
        "vocab_size": int(model.llm.info["vocab_size"]),
    }
