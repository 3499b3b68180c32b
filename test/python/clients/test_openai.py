"""A session with OpenAI's own client for Python."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import openai
import pytest
from pydantic import BaseModel, Field

MODEL = "smollm2"
PARIS = [{"role": "user", "content": "What is the capital of France?"}]
GREEDY = {"model": MODEL, "temperature": 0, "max_tokens": 24}


class City(BaseModel):
    name: str = Field(max_length=20)
    country: str = Field(max_length=20)
    inhabitants: int = Field(ge=0, le=99_999_999)


class Weather(BaseModel):
    """How the weather is."""

    city: str = Field(max_length=20)
    days: int = Field(ge=1, le=9)


@pytest.fixture
def client(base_url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
        yield client


def test_chat(client):
    answer = client.chat.completions.create(messages=PARIS, **GREEDY)
    [choice] = answer.choices
    assert "Paris" in choice.message.content and choice.finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert [one.id for one in client.models.list()] == [MODEL]


def test_a_stream_says_the_same(client):
    whole = client.chat.completions.create(messages=PARIS, **GREEDY)
    stream = client.chat.completions.create(
        messages=PARIS, stream=True, stream_options={"include_usage": True}, **GREEDY
    )
    text, usage = "", None
    for chunk in stream:
        text += "".join(choice.delta.content or "" for choice in chunk.choices)
        usage = chunk.usage or usage
    assert text == whole.choices[0].message.content
    assert usage.completion_tokens == whole.usage.completion_tokens


def test_the_streaming_helper(client):
    whole = client.chat.completions.create(messages=PARIS, **GREEDY).choices[0].message.content
    with client.chat.completions.stream(messages=PARIS, **GREEDY) as stream:
        deltas = [event.delta for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion()
    assert "".join(deltas) == whole == final.choices[0].message.content
    assert final.choices[0].finish_reason == "stop"


def test_logprobs(client):
    answer = client.chat.completions.create(messages=PARIS, logprobs=True, top_logprobs=4, **GREEDY)
    [choice] = answer.choices
    content = choice.logprobs.content
    assert len(content) == answer.usage.completion_tokens
    for token in content:
        likely = [one.logprob for one in token.top_logprobs]
        assert len(likely) == 4 and likely == sorted(likely, reverse=True)
        # Greedy: the chosen token is the likeliest.
        assert token.logprob == likely[0] <= 0 and token.token == token.top_logprobs[0].token
    whole = b"".join(bytes(token.bytes) for token in content).decode()
    assert whole.startswith(choice.message.content)


def test_text_completions(client):
    ask = {"model": MODEL, "prompt": "Once upon a time", "temperature": 0}
    whole = client.completions.create(**ask, max_tokens=8, logprobs=2, echo=True).choices[0]
    assert whole.text.startswith("Once upon a time") and len(whole.text) > 20
    assert whole.logprobs.token_logprobs[0] is None
    assert "".join(whole.logprobs.tokens) == whole.text
    streamed = client.completions.create(**ask, max_tokens=8, stream=True)
    assert "Once upon a time" + "".join(chunk.choices[0].text for chunk in streamed) == whole.text


def test_a_seed_makes_an_answer_again(client):
    ask = {"model": MODEL, "messages": PARIS, "max_tokens": 16, "temperature": 1.2, "seed": 5, "n": 3}
    one, other = (client.chat.completions.create(**ask) for _ in range(2))
    texts = [choice.message.content for choice in one.choices]
    assert texts == [choice.message.content for choice in other.choices] and len(set(texts)) > 1


def test_parsed_answers(client):
    """response_format json_schema, made from a class by the client."""
    ask = [{"role": "user", "content": "Tell me about Paris, as JSON."}]
    answer = client.chat.completions.parse(
        model=MODEL, messages=ask, response_format=City, max_tokens=200, temperature=0.7, seed=1
    )
    city = answer.choices[0].message.parsed
    assert isinstance(city, City) and city.inhabitants >= 0
    with client.chat.completions.stream(
        model=MODEL, messages=ask, response_format=City, max_tokens=200, temperature=0.7, seed=1
    ) as stream:
        assert stream.until_done().get_final_completion().choices[0].message.parsed == city
    objects = client.chat.completions.create(
        model=MODEL, messages=ask, response_format={"type": "json_object"}, max_tokens=300, temperature=0
    ).choices[0]
    if objects.finish_reason == "stop":
        assert isinstance(json.loads(objects.message.content), dict)
    else:
        assert objects.message.content.lstrip().startswith("{")


def test_tools(client):
    """A call, its result, an answer: whole, streamed, and through the client's own parsing of arguments."""
    tool = openai.pydantic_function_tool(Weather)
    ask = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "How is the weather in Paris?"}],
        "tools": [tool],
        "tool_choice": "required",
        "max_tokens": 100,
        "temperature": 0,
    }
    answer = client.chat.completions.create(**ask)
    [call] = answer.choices[0].message.tool_calls
    assert answer.choices[0].finish_reason == "tool_calls" and call.function.name == "Weather"
    weather = Weather.model_validate_json(call.function.arguments)

    parsed = client.chat.completions.parse(**ask).choices[0].message.tool_calls[0]
    assert parsed.function.parsed_arguments == weather

    with client.chat.completions.stream(**ask) as stream:
        done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
    assert [Weather.model_validate_json(event.arguments) for event in done] == [weather]

    back = [
        *ask["messages"],
        answer.choices[0].message,
        {"role": "tool", "tool_call_id": call.id, "content": "It rains."},
    ]
    last = client.chat.completions.create(**{**ask, "messages": back, "tool_choice": "none"})
    assert last.choices[0].message.content and not last.choices[0].message.tool_calls


def test_responses(client):
    """The other API of the same client: whole, streamed, parsed, with a call, and going on."""
    ask = {"model": MODEL, "temperature": 0, "max_output_tokens": 24}
    whole = client.responses.create(input=PARIS[0]["content"], **ask)
    chat = client.chat.completions.create(messages=PARIS, **GREEDY).choices[0].message.content
    assert whole.output_text == chat and whole.status == "completed"
    with client.responses.stream(input=PARIS[0]["content"], **ask) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        assert text == chat == stream.get_final_response().output_text
    more = client.responses.create(input="And of Italy?", previous_response_id=whole.id, **ask)
    assert more.output_text and more.usage.input_tokens > whole.usage.input_tokens

    about = {"model": MODEL, "input": "Tell me about Paris, as JSON.", "temperature": 0, "max_output_tokens": 200}
    assert isinstance(client.responses.parse(text_format=City, **about).output_parsed, City)

    tool = openai.pydantic_function_tool(Weather)["function"]
    asked = client.responses.create(
        model=MODEL, input="How is the weather in Paris?", tools=[{"type": "function", **tool}],
        tool_choice="required", max_output_tokens=100, temperature=0,
    )  # fmt: skip
    [call] = asked.output
    Weather.model_validate_json(call.arguments)
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "It rains."}
    assert client.responses.create(input=[result], previous_response_id=asked.id, **ask).output_text


def test_async(base_url, client):
    questions = [f"What is {i} plus {i}?" for i in range(6)]

    def ask(question: str, **more) -> dict[str, object]:
        return {**GREEDY, "messages": [{"role": "user", "content": question}], "max_tokens": 12, **more}

    async def everything() -> list[tuple[str, str]]:
        async with openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0) as client:

            async def one(question: str) -> tuple[str, str]:
                whole = await client.chat.completions.create(**ask(question))
                text = ""
                async for chunk in await client.chat.completions.create(**ask(question, stream=True)):
                    text += chunk.choices[0].delta.content or ""
                return whole.choices[0].message.content, text

            return await asyncio.gather(*(one(question) for question in questions))

    answers = asyncio.run(everything())
    assert all(whole == streamed for whole, streamed in answers)
    alone = client.chat.completions.create(**ask(questions[3])).choices[0].message.content
    assert answers[3][0] == alone


def test_errors_have_the_classes_that_users_catch(client):
    with pytest.raises(openai.NotFoundError, match="model 'gpt-4o' is not served here"):
        client.chat.completions.create(model="gpt-4o", messages=PARIS)
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model=MODEL, messages=PARIS, max_tokens=10**6)
    assert refused.value.code == "context_length_exceeded" and refused.value.param == "max_tokens"
    with pytest.raises(openai.BadRequestError, match="prompt"):
        client.completions.create(model=MODEL, prompt=[], stream=True)
    raw = client.models.with_raw_response.list(extra_headers={"X-Request-Id": "mine"})
    assert raw.headers["x-request-id"] == "mine"
