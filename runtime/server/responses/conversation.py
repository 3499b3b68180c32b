"""A request of the Responses API as the chat request that means the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llmc.server.errors import ApiError
from llmc.server.protocol import ChatRequest, Common, Message
from llmc.server.responses.items import OutputItem
from llmc.server.responses.protocol import (
    CallOutput,
    InputCall,
    InputMessage,
    InputReasoning,
    Item,
    NamedFunction,
    Refusal,
    ResponsesRequest,
    TextContent,
)

#: What chat.py calls a field of ours.
PARAMS = {"max_tokens": "max_output_tokens", "messages": "input", "response_format": "text.format"}

#: A message as chat templates read it.
PlainMessage = dict[str, Any]


def refuse_unsupported(body: ResponsesRequest) -> None:
    """Fields that would change the answer and cannot."""
    for name, wrong, why in (
        ("background", body.background, "a response is made while its request waits: send false"),
        ("truncation", body.truncation == "auto", "nothing is dropped from a conversation: send 'disabled'"),
        ("text.verbosity", body.text and body.text.verbosity not in (None, "medium"), "leave it out or send 'medium'"),
    ):
        if wrong:
            raise ApiError(400, f"{name} is not supported: {why}", param=name)


def chat_request(body: ResponsesRequest, before: Sequence[PlainMessage]) -> ChatRequest:
    """`before` is the conversation that previous_response_id names."""
    shared = body.model_dump(include=set(Common.model_fields), exclude_unset=True)
    form = body.text.format if body.text else None
    told = [{"role": "system", "content": body.instructions}] if body.instructions else []
    messages = [*told, *before, *plain_input(body.input)]
    fields: dict[str, Any] = {
        "messages": [Message.model_validate(message) for message in messages],
        "max_completion_tokens": body.max_output_tokens,
        "chat_template_kwargs": body.chat_template_kwargs,
        "parallel_tool_calls": body.parallel_tool_calls,
        "reasoning_effort": body.reasoning.effort if body.reasoning else None,
        "structured_outputs": body.structured_outputs,
        "logprobs": wants_logprobs(body),
        "top_logprobs": body.top_logprobs if wants_logprobs(body) else None,
    }
    if body.tools:
        fields["tools"] = [{"type": "function", "function": _without_type(tool)} for tool in body.tools]
    if isinstance(body.tool_choice, NamedFunction):
        fields["tool_choice"] = {"type": "function", "function": {"name": body.tool_choice.name}}
    else:
        fields["tool_choice"] = body.tool_choice
    if form is not None:
        fields["response_format"] = {"type": form.type}
        if form.type == "json_schema":
            if form.schema_ is None:
                raise ApiError(400, "text.format: expected a schema beside type json_schema", param="text.format")
            fields["response_format"]["json_schema"] = {"name": form.name, "schema": form.schema_}
    return ChatRequest.model_validate({**shared, **fields})


def _without_type(tool: Any) -> dict[str, Any]:
    found: dict[str, Any] = tool.model_dump(exclude_none=True)
    del found["type"]
    return found


def wants_logprobs(body: ResponsesRequest) -> bool:
    return "message.output_text.logprobs" in (body.include or ()) or bool(body.top_logprobs)


def plain_input(given: str | Sequence[Item]) -> list[PlainMessage]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else plain_messages(given)


def plain_messages(items: Sequence[Item]) -> list[PlainMessage]:
    """Reasoning, text and calls of one turn become one message of the assistant."""
    messages: list[PlainMessage] = []
    turn: PlainMessage | None = None  # of the assistant, still growing

    def assistant() -> PlainMessage:
        nonlocal turn
        if turn is None:
            turn = {"role": "assistant", "content": ""}
            messages.append(turn)
        return turn

    for item in items:
        if isinstance(item, InputReasoning):
            turn = None
            if text := "".join(part.text for part in item.content or ()):
                assistant()["reasoning_content"] = text
        elif isinstance(item, InputCall):
            call = {"name": item.name, "arguments": item.arguments}
            assistant().setdefault("tool_calls", []).append({"id": item.call_id, "type": "function", "function": call})
        elif isinstance(item, CallOutput):
            turn = None
            messages.append({"role": "tool", "tool_call_id": item.call_id, "content": _text(item.output)})
        elif isinstance(item, InputMessage) and item.role == "assistant":
            if turn is not None and (turn["content"] or "tool_calls" in turn):
                turn = None
            assistant()["content"] = _text(item.content)
        elif isinstance(item, InputMessage):
            turn = None
            messages.append({"role": item.role, "content": _text(item.content)})
    return messages


def _text(content: str | Sequence[TextContent | Refusal]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.refusal if isinstance(part, Refusal) else part.text for part in content)


def plain_output(output: Sequence[OutputItem]) -> list[PlainMessage]:
    """A response's own items, for the conversation that goes on."""
    kinds: dict[str, type[Item]] = {"message": InputMessage, "function_call": InputCall, "reasoning": InputReasoning}
    return plain_messages([kinds[item.type].model_validate(item.model_dump()) for item in output])
