"""A real HTTP server (uvicorn on a free port) over an engine, in this process."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx
import openai
import pytest
import uvicorn

from llmc.runtime import LLM
from llmc.server import Models, ServedModel, ServerConfig, create_app


@dataclass
class Running:
    url: str
    llm: LLM
    models: Models
    client: openai.OpenAI
    http: httpx.Client

    def settle(self) -> dict:
        """Statistics once nothing runs; fails when something still does after ten seconds."""
        end = time.monotonic() + 10
        while (stats := self.llm.stats)["num_running"] + stats["num_waiting"] + self.models.num_requests:
            assert time.monotonic() < end, f"requests never ended: {stats}"
            time.sleep(0.01)
        assert stats["blocks_used"] == 0
        return stats


@contextlib.contextmanager
def running(engine, config: ServerConfig, **model) -> Iterator[Running]:
    with LLM(engine) as llm, socket.create_server(("127.0.0.1", 0)) as listener:
        models = Models([ServedModel("toy", llm, **model)])
        server = uvicorn.Server(uvicorn.Config(create_app(models, config), log_level="warning", lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        key = config.api_keys[0] if config.api_keys else "none"
        try:
            with (
                openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client,
                httpx.Client(base_url=url, timeout=60) as http,
            ):
                yield Running(url, llm, models, client, http)
        finally:
            server.should_exit = True
            thread.join(30)
        assert not thread.is_alive()


@pytest.fixture
def serve(toy) -> Iterator[Callable[..., Running]]:
    with contextlib.ExitStack() as stack:
        yield lambda engine=toy, **options: stack.enter_context(running(engine, ServerConfig(**options)))


@pytest.fixture
def server(serve) -> Running:
    return serve()
