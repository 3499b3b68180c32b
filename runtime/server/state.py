"""What the handlers of one server share."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request

from llmc.server.admission import Admission
from llmc.server.config import ServerConfig
from llmc.server.metrics import RequestMetrics
from llmc.server.models import Models
from llmc.server.responses.store import ResponseStore


@dataclass
class ServerState:
    config: ServerConfig
    models: Models
    admission: Admission
    metrics: RequestMetrics
    responses: ResponseStore


def state_of(request: Request) -> ServerState:
    state: ServerState = request.app.state.llmc
    return state
