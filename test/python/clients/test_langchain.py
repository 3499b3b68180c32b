"""A session with langchain-openai."""

from __future__ import annotations

import asyncio

import pytest
from langchain_openai import ChatOpenAI, OpenAI
from pydantic import BaseModel, Field

MODEL = "smollm2"
QUESTION = "What is the capital of France?"


class Place(BaseModel):
    """A place on Earth."""

    city: str = Field(max_length=20)
    country: str = Field(max_length=20)


@pytest.fixture
def chat(base_url: str) -> ChatOpenAI:
    return ChatOpenAI(base_url=base_url, api_key="none", model=MODEL, temperature=0, max_tokens=100, max_retries=0)


def test_invoke_stream_and_batch(chat):
    whole = chat.invoke(QUESTION)
    assert "Paris" in whole.content and whole.usage_metadata["output_tokens"] > 0
    assert whole.response_metadata["finish_reason"] == "stop"
    assert "".join(chunk.content for chunk in chat.stream(QUESTION)) == whole.content
    several = chat.batch([QUESTION, [("system", "You answer in one word."), ("human", QUESTION)]])
    assert several[0].content == whole.content and several[1].content


def test_async(chat):
    async def both() -> tuple[str, str]:
        whole = await chat.ainvoke(QUESTION)
        streamed = [chunk.content async for chunk in chat.astream(QUESTION)]
        return whole.content, "".join(streamed)

    whole, streamed = asyncio.run(both())
    assert whole == streamed


def test_logprobs(chat):
    found = chat.bind(logprobs=True, top_logprobs=2).invoke(QUESTION).response_metadata["logprobs"]
    assert all(len(token["top_logprobs"]) == 2 for token in found["content"])


def test_tools(chat):
    caller = chat.bind_tools([Place], tool_choice="Place")
    [call] = caller.invoke("Where is the Eiffel Tower?").tool_calls
    assert call["name"] == "Place" and Place.model_validate(call["args"])
    whole = None
    for chunk in caller.stream("Where is the Eiffel Tower?"):
        whole = chunk if whole is None else whole + chunk
    assert [one["args"] for one in whole.tool_calls] == [call["args"]]


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output(chat, method):
    found = chat.with_structured_output(Place, method=method).invoke("Where is the Eiffel Tower?")
    assert isinstance(found, Place)


def test_responses_api(base_url):
    chat = ChatOpenAI(
        base_url=base_url, api_key="none", model=MODEL, temperature=0, max_tokens=40, use_responses_api=True
    )
    whole = chat.invoke(QUESTION)
    assert "Paris" in whole.text
    assert "".join(chunk.text for chunk in chat.stream(QUESTION)) == whole.text
    place = chat.with_structured_output(Place, method="json_schema").invoke("Where is the Eiffel Tower?")
    assert isinstance(place, Place)


def test_text_completions(base_url):
    text = OpenAI(base_url=base_url, api_key="none", model=MODEL, temperature=0, max_tokens=12, max_retries=0)
    whole = text.invoke("Once upon a time")
    assert len(whole) > 10
    assert "".join(text.stream("Once upon a time")) == whole
