"""/v1/responses: the same answers as /v1/chat/completions, in items; streamed equals not streamed."""

from __future__ import annotations

import json

import openai
import pytest

GREEDY = {"model": "toy", "temperature": 0, "extra_body": {"ignore_eos": True}}
ASK = {**GREEDY, "input": "what", "max_output_tokens": 9}
TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Zürich"}}\n</tool_call>'


def said(server, messages, **more):
    return server.client.chat.completions.create(messages=messages, max_tokens=9, **GREEDY, **more).choices[0].message


def test_an_answer(server):
    answer = server.client.responses.create(**ASK, instructions="abc")
    alone = said(server, [{"role": "system", "content": "abc"}, {"role": "user", "content": "what"}])
    assert answer.output_text == alone.content
    [message] = answer.output
    assert (message.type, message.role, message.status) == ("message", "assistant", "incomplete")
    assert (answer.status, answer.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    usage = answer.usage
    assert usage.output_tokens == 9 and usage.total_tokens == usage.input_tokens + 9
    assert (answer.instructions, answer.max_output_tokens, answer.temperature) == ("abc", 9, 0)


def events_of(server, **ask):
    """Events, checked for what holds for all streams: numbers count up, deltas make up what `done` says."""
    events = list(server.client.responses.create(stream=True, **ask))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    deltas: dict[str, str] = {}
    for event in events:
        if event.type.endswith(".delta"):
            deltas[event.item_id] = deltas.get(event.item_id, "") + event.delta
        elif event.type.endswith("_text.done"):
            assert deltas[event.item_id] == event.text
        elif event.type == "response.function_call_arguments.done":
            assert deltas[event.item_id] == event.arguments
        elif event.type == "response.output_item.added":
            assert event.item.status == "in_progress"
    done = [event.item for event in events if event.type == "response.output_item.done"]
    assert [item.id for item in done] == list(deltas)
    assert [item.to_dict() for item in done] == [item.to_dict() for item in events[-1].response.output]
    return events


def shape(response):
    """Without ids and moments."""
    found = response.to_dict()
    for item in found["output"]:
        item.pop("id"), item.pop("call_id", None)
    return {k: v for k, v in found.items() if k not in ("id", "created_at", "completed_at")}


def test_streamed_equals_not_streamed(server):
    for more in ({}, {"include": ["message.output_text.logprobs"]}, {"top_logprobs": 2}, {"max_output_tokens": 1}):
        whole = server.client.responses.create(**{**ASK, **more})
        whole = server.client.responses.create(**{**ASK, **more})  # now its prompt is cached, as it will be again
        last = events_of(server, **{**ASK, **more})[-1]
        assert last.type == "response.incomplete"
        assert shape(last.response) == shape(whole)


def test_logprobs(server):
    answer = server.client.responses.create(**ASK, top_logprobs=2)
    chat = server.client.chat.completions.create(
        messages=[{"role": "user", "content": "what"}], max_tokens=9, logprobs=True, top_logprobs=2, **GREEDY
    )
    [part] = answer.output[0].content
    expected = chat.choices[0].logprobs.content
    assert [(one.token, one.logprob) for one in part.logprobs] == [(one.token, one.logprob) for one in expected]
    assert all(len(one.top_logprobs) == 2 for one in part.logprobs)


def test_a_conversation_goes_on(server):
    """By previous_response_id, or with the items sent back."""
    first = server.client.responses.create(**ASK, instructions="once")
    second = {**ASK, "input": "and"}
    stored = server.client.responses.create(**second, previous_response_id=first.id)
    items = [{"role": "user", "content": "what"}, *first.output, {"role": "user", "content": "and"}]
    sent = server.client.responses.create(**{**ASK, "input": items})
    alone = said(
        server,
        [
            {"role": "user", "content": "what"},
            {"role": "assistant", "content": first.output_text},
            {"role": "user", "content": "and"},
        ],
    )
    assert stored.output_text == sent.output_text == alone.content
    third = server.client.responses.create(**second, previous_response_id=stored.id)
    assert third.usage.input_tokens > stored.usage.input_tokens


def test_stored_responses(server):
    answer = server.client.responses.create(**ASK)
    assert server.client.responses.retrieve(answer.id).to_dict() == answer.to_dict()
    [item] = server.client.responses.input_items.list(answer.id).data
    assert item.content[0].text == "what"
    server.client.responses.delete(answer.id)
    for id in (answer.id, server.client.responses.create(**ASK, store=False).id):
        with pytest.raises(openai.NotFoundError, match="there is no response 'resp_"):
            server.client.responses.retrieve(id)
    with pytest.raises(openai.NotFoundError, match="send the whole conversation"):
        server.client.responses.create(**ASK, previous_response_id=answer.id)


def test_the_store_is_bounded(serve):
    server = serve(response_store_bytes=10_000)
    ids = [server.client.responses.create(**ASK).id for _ in range(40)]
    kept = [server.http.get(f"/v1/responses/{id}").status_code == 200 for id in ids]
    assert kept[-1] and not kept[0] and kept == sorted(kept)
    off = serve(response_store_bytes=0)
    answer = off.client.responses.create(**ASK)
    assert not answer.store and off.http.get(f"/v1/responses/{answer.id}").status_code == 404
    with pytest.raises(openai.BadRequestError, match="send store false"):
        off.client.responses.create(**ASK, store=True)


def test_reasoning_content_and_calls(scripted):
    server = scripted(f"<think>\nHm.\n</think>\n\nI look.\n{CALL}\n{CALL}")
    ask = {"model": "toy", "input": "how is it", "tools": [TOOL]}
    whole = server.client.responses.create(**ask)
    assert [item.type for item in whole.output] == ["reasoning", "message", "function_call", "function_call"]
    assert whole.output[0].content[0].text == "\nHm.\n" and whole.output_text == "I look."
    assert json.loads(whole.output[2].arguments) == {"city": "Zürich"}
    assert whole.status == "completed" and all(item.status == "completed" for item in whole.output)
    assert 0 < whole.usage.output_tokens_details.reasoning_tokens < whole.usage.output_tokens
    last = events_of(server, **ask)[-1]
    assert last.type == "response.completed"
    assert shape(last.response)["output"] == shape(whole)["output"]
    alone = server.client.responses.create(**ask, parallel_tool_calls=False)
    assert [item.type for item in alone.output] == ["reasoning", "message", "function_call"]

    # The results go back in; one turn of the assistant is one message of the template.
    call = whole.output[2]
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "how"}, {"type": "input_text", "text": "is it"}]},
        *whole.output,
        {"type": "function_call_output", "call_id": call.call_id, "output": "rain"},
    ]
    back = server.client.responses.create(model="toy", input=items, tools=[TOOL])
    chat = [
        {"role": "user", "content": "how\nis it"},
        {"role": "assistant", "content": "I look.", "reasoning_content": "\nHm.\n", "tool_calls": []},
        {"role": "tool", "content": "rain", "tool_call_id": call.call_id},
    ]
    function = {"name": "weather", "arguments": call.arguments}
    chat[1]["tool_calls"] = [{"id": "x", "type": "function", "function": function}] * 2
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    said_back = server.client.chat.completions.create(model="toy", messages=chat, tools=[tool])
    assert back.usage.input_tokens == said_back.usage.prompt_tokens


def test_structured_text(server):
    schema = {"enum": [None, True]}
    form = {"type": "json_schema", "name": "x", "schema": schema}
    answer = server.client.responses.create(
        model="toy", input="x", text={"format": form}, temperature=2, max_output_tokens=60, extra_body={"seed": 3}
    )
    assert json.loads(answer.output_text) in (None, True) and answer.status == "completed"
    assert answer.text.format.to_dict() == form


def test_an_error_in_the_middle_is_an_event(scripted):
    server = scripted("some text")

    async def failing(prompt, params, *, priority, timeout):
        from llmc.runtime.errors import DeviceError
        from llmc.runtime.outputs import CompletionDelta

        yield CompletionDelta("some", [5])
        raise DeviceError("it melted")

    server.models.get("toy").engine.generate = failing
    *_, error, failed = server.http.post(
        "/v1/responses", json={"input": "x", "stream": True}
    ).text.strip().split("\n\n")  # fmt: skip
    assert error.startswith("event: error\n") and "it melted" in error
    assert failed.startswith("event: response.failed\n") and '"device_error"' in failed
    assert server.http.post("/v1/responses", json={"input": "x"}).status_code == 500


BAD = [
    ({}, "input: Field required"),
    ({"input": []}, "input"),
    ({"input": "a", "max_tokens": 5}, "unknown field 'max_tokens'"),
    ({"input": "a", "max_output_tokens": 500}, "the prompt has"),
    ({"input": "a", "background": True}, "background is not supported"),
    ({"input": "a", "truncation": "auto"}, "truncation is not supported"),
    ({"input": "a", "text": {"verbosity": "low"}}, "verbosity is not supported"),
    ({"input": "a", "text": {"format": {"type": "json_schema", "name": "x"}}}, "expected a schema"),
    ({"input": "a", "tools": [{"type": "web_search"}]}, "tools.0.type"),
    ({"input": [{"role": "robot", "content": "x"}]}, "role"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "item_reference"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input_image"),
    ({"input": "a", "tool_choice": "required"}, "there are no tools"),
    ({"input": [{"type": "function_call", "call_id": "1", "name": "f", "arguments": "{"}]}, "JSON text"),
]


@pytest.mark.parametrize("stream", [False, True])
def test_refusals(server, stream):
    for body, message in BAD:
        answer = server.http.post("/v1/responses", json={**body, "stream": stream})
        assert answer.status_code == 400, (body, answer.text)
        assert message in answer.json()["error"]["message"], (body, answer.text)
    asked = server.http.post("/v1/responses", json={"input": "a", "max_output_tokens": 500}).json()
    assert asked["error"]["param"] == "max_output_tokens"
    server.settle()
