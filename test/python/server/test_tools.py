"""Tool calls and reasoning over HTTP; the model is a script."""

from __future__ import annotations

import json

import openai
import pytest
from support.toy_server import running

from llmc.server import ServerConfig

CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Z\u00fcrich"}}\n</tool_call>'
ANSWER = f"<think>\nHm.\n</think>\n\nI look.\n{CALL}\n{CALL}"
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
CITIES = ["Bern", "Z\u00fcrich"]
MESSAGES = [{"role": "user", "content": "how is it"}]


def streamed(client, **ask):
    """(reasoning, content, calls, finish) put together as a client does."""
    reasoning, content, calls, finish = "", "", {}, None
    for event in client.chat.completions.create(stream=True, **ask):
        [choice] = event.choices
        reasoning += getattr(choice.delta, "reasoning_content", None) or ""
        content += choice.delta.content or ""
        for call in choice.delta.tool_calls or []:
            assert call.index == len(calls) and call.id and call.type == "function"
            calls[call.index] = (call.function.name, json.loads(call.function.arguments))
        assert finish is None
        finish = choice.finish_reason
    return reasoning, content, list(calls.values()), finish


@pytest.mark.parametrize("text", [ANSWER, CALL, "Just text.", "<think>a</think>b", "<tool_call>broken</tool_call>"])
def test_streamed_equals_not_streamed(scripted, text):
    server = scripted(text)
    ask = {"model": "toy", "messages": MESSAGES, "tools": TOOLS}
    [choice] = server.client.chat.completions.create(**ask).choices
    calls = [(c.function.name, json.loads(c.function.arguments)) for c in choice.message.tool_calls or []]
    reasoning = getattr(choice.message, "reasoning_content", None) or ""
    whole = (reasoning, choice.message.content or "", calls, choice.finish_reason)
    assert streamed(server.client, **ask) == whole
    assert (choice.finish_reason == "tool_calls") == bool(calls) == (CALL in text)
    if text == ANSWER:
        assert whole == ("\nHm.\n", "I look.", [("weather", {"city": "Z\u00fcrich"})] * 2, "tool_calls")


def test_without_tools_a_call_is_text(scripted):
    server = scripted(CALL)
    for extra in ({}, {"tools": TOOLS, "tool_choice": "none"}):
        [choice] = server.client.chat.completions.create(model="toy", messages=MESSAGES, **extra).choices
        assert (choice.message.content, choice.finish_reason) == (CALL, "stop")


def test_a_conversation_with_calls_goes_back_in(scripted):
    server = scripted("ok")
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}
    messages = [
        *MESSAGES,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "content": "rain", "tool_call_id": "1"},
    ]
    for extra in ({}, {"content": None}, {"content": ""}):  # the clients' ways to say that there was only a call
        messages[1] = {"role": "assistant", "tool_calls": [call], **extra}
        answer = server.client.chat.completions.create(model="toy", messages=messages, tools=TOOLS)
        assert answer.choices[0].message.content == "ok"
    call["function"]["arguments"] = "{"
    with pytest.raises(openai.BadRequestError, match="JSON text"):
        server.client.chat.completions.create(model="toy", messages=messages, tools=TOOLS)


def test_refusals(scripted):
    server = scripted("ok", tools=None)
    ask = {"model": "toy", "messages": MESSAGES}
    named = {"type": "function", "function": {"name": "x"}}
    for extra, message in (
        ({"tools": TOOLS}, "no form of tool calls"),
        ({"tools": TOOLS, "tool_choice": named}, "tool_choice names 'x'; the tools are 'weather'"),
        ({"tool_choice": "required"}, "there are no tools"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools.0.function.name"),
    ):
        with pytest.raises(openai.BadRequestError, match=message):
            server.client.chat.completions.create(**ask, **extra)


@pytest.mark.slow
def test_a_required_call_follows_the_schema(smollm2_host_engine):
    """SmolLM2 knows no tools; the grammar makes it call one all the same."""
    parameters = {
        "type": "object",
        "properties": {"city": {"enum": CITIES}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
        "required": ["city", "days"],
        "additionalProperties": False,
    }
    nothing = {"type": "object", "properties": {}, "additionalProperties": False}
    tools = [
        {"type": "function", "function": {"name": "weather", "parameters": parameters}},
        {"type": "function", "function": {"name": "clock", "parameters": nothing}},
    ]
    for form in ("hermes", "llama3_json"):
        with running(smollm2_host_engine, ServerConfig(), tool_call_parser=form) as server:
            for choice in ("required", {"type": "function", "function": {"name": "weather"}}):
                ask = {"model": "toy", "messages": MESSAGES, "tools": tools, "tool_choice": choice, "seed": 1}
                [answer] = server.client.chat.completions.create(**ask).choices
                assert answer.message.tool_calls, answer
                [call] = answer.message.tool_calls
                assert answer.finish_reason == "tool_calls" and not answer.message.content
                arguments = json.loads(call.function.arguments)
                if call.function.name == "weather":
                    assert arguments["city"] in CITIES and 1 <= arguments["days"] <= 9
                else:
                    assert choice == "required" and call.function.name == "clock"
                assert streamed(server.client, **ask)[2] == [(call.function.name, arguments)]
