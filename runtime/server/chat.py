"""POST /v1/chat/completions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.responses import Response

from llmc.server.chat_answer import ChatAnswer
from llmc.server.errors import ApiError
from llmc.server.generation import Generation, answered, encode
from llmc.server.models import ServedModel
from llmc.server.parsers import OutputParser
from llmc.server.protocol import ChatCompletion, ChatRequest, Message, NamedTool, TextPart, Tool
from llmc.server.sampling import room, sampling_params
from llmc.server.state import ServerState, state_of
from llmc.server.streaming import EventStream, as_json, unless_disconnected

router = APIRouter()


@router.post("/v1/chat/completions", responses=answered(ChatCompletion), response_model=None)
async def create_chat_completion(body: ChatRequest, request: Request) -> Response:
    """Answers a conversation, rendered with the model's chat template."""
    generation, parsers = await begin(body, state_of(request))
    work = ChatAnswer(body, generation, parsers)
    log = request.state.log
    if body.stream:
        return EventStream(work.events(log))
    answer = await unless_disconnected(request, work.whole())
    work.generation.note(log)
    return JSONResponse(as_json(answer))


async def begin(body: ChatRequest, state: ServerState) -> tuple[Generation, list[OutputParser]]:
    """The work of a conversation, and a parser for each of its answers. Raises ApiError."""
    model = state.models.get(body.model)
    if body.top_logprobs is not None and not body.logprobs:
        raise ApiError(400, "top_logprobs needs logprobs=true", param="top_logprobs")
    tools = _offered(body, model)
    variables = body.chat_template_kwargs
    if body.reasoning_effort is not None:  # for templates that know it
        variables = {"reasoning_effort": body.reasoning_effort, **variables}
    text = await render(model, body.messages, tools, body.add_generation_prompt, variables)
    ids = await encode(model, text, add_special_tokens=False)
    asked = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
    length = room(model, len(ids), asked, state.config.default_max_tokens)
    params = sampling_params(body, model, length, (body.top_logprobs or 0) if body.logprobs else None)
    tool_parser = model.tool_call_parser if tools else None
    most = 1 if body.parallel_tool_calls is False else None
    parsers = [OutputParser(model.reasoning_parser, tool_parser, text, most) for _ in range(body.n)]
    return Generation(state, model, [ids], [params], body), parsers


def _offered(body: ChatRequest, model: ServedModel) -> list[Tool]:
    """The tools that the answer may call."""
    tools = body.tools or []
    choice = body.tool_choice
    if not tools:
        if isinstance(choice, NamedTool) or choice == "required":
            raise ApiError(400, "tool_choice asks for a call, but there are no tools", param="tool_choice")
        return []
    if choice == "none":
        return []
    if isinstance(choice, NamedTool):
        names = [tool.function.name for tool in tools]
        if choice.function.name not in names:
            found = ", ".join(f"'{name}'" for name in names)
            raise ApiError(
                400, f"tool_choice names '{choice.function.name}'; the tools are {found}", param="tool_choice"
            )
    if model.tool_call_parser is None:
        raise ApiError(
            400,
            f"model '{model.name}' has no form of tool calls that llmc reads: "
            'send tool_choice "none", or start the server with --tool_call_parser',
            param="tools",
        )
    return tools


async def render(
    model: ServedModel,
    messages: Sequence[Message],
    tools: Sequence[Tool],
    add_generation_prompt: bool,
    variables: dict[str, Any],
) -> str:
    """The conversation as the model reads it; its special tokens are written out."""
    return await asyncio.to_thread(
        model.tokenizer.apply_chat_template,
        [_plain(message) for message in messages],
        tools=[tool.model_dump(exclude_none=True) for tool in tools] or None,
        add_generation_prompt=add_generation_prompt,
        **variables,
    )


def _plain(message: Message) -> dict[str, Any]:
    """A message as templates read it: text content in one piece, 'developer' under the name they know,
    arguments of calls as objects."""
    fields = message.model_dump(exclude_unset=True)
    if isinstance(message.content, list):
        fields["content"] = "\n".join(part.text for part in message.content if isinstance(part, TextPart))
    if message.role == "developer":
        fields["role"] = "system"
    if isinstance(calls := fields.get("tool_calls"), list):
        # Clients send null, which templates would add to a text.
        fields["content"] = fields.get("content") or ""
        fields["tool_calls"] = [_plain_call(call) for call in calls]
    return fields


def _plain_call(call: Any) -> Any:
    try:
        function = dict(call["function"])
        if isinstance(function["arguments"], str):
            function["arguments"] = json.loads(function["arguments"] or "{}")
        return {**call, "function": function}
    except (KeyError, TypeError, ValueError):
        what = 'expected {"id", "type", "function": {"name", "arguments": JSON text}}'
        raise ApiError(400, f"tool_calls: {what}, found {json.dumps(call)[:200]}", param="messages") from None
