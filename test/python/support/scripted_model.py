"""A served model that says what a test wants."""

from __future__ import annotations

import random

import pytest

from llmc.runtime.outputs import CompletionDelta


class Script:
    """An engine that says `text`, in random pieces."""

    def __init__(self, text: str) -> None:
        self.text, self.rng, self.prompts = text, random.Random(1), []

    async def generate(self, prompt, params, *, priority, timeout):
        self.prompts.append(prompt["prompt_token_ids"])
        rest = self.text
        while rest:
            size = self.rng.randrange(1, 8)
            yield CompletionDelta(rest[:size], [5])
            rest = rest[size:]
        yield CompletionDelta("", [0], finish_reason="stop")

    def close(self) -> None:
        pass

    num_requests = 0


@pytest.fixture
def scripted(server):
    def play(text: str, tools: str | None = "hermes", reasoning: str | None = "qwen3"):
        model = server.models.get("toy")
        model.engine.close()
        model.engine = Script(text)
        model.tool_call_parser, model.reasoning_parser = tools, reasoning
        return server

    return play
