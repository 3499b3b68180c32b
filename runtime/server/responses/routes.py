"""POST /v1/responses, and what was stored."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.responses import Response

from llmc.server.chat import begin
from llmc.server.errors import ApiError, documented
from llmc.server.generation import Generation, answered
from llmc.server.parsers import OutputParser
from llmc.server.responses.answer import ResponseAnswer, dump
from llmc.server.responses.conversation import (
    PARAMS,
    PlainMessage,
    chat_request,
    plain_input,
    plain_output,
    refuse_unsupported,
)
from llmc.server.responses.items import ResponseObject, new_id
from llmc.server.responses.protocol import ResponsesRequest
from llmc.server.state import ServerState, state_of
from llmc.server.streaming import EventStream, unless_disconnected

router = APIRouter()


@router.post("/v1/responses", responses=answered(ResponseObject), response_model=None)
async def create_response(body: ResponsesRequest, request: Request) -> Response:
    """Answers a text or a list of items, after the response that previous_response_id names."""
    state = state_of(request)
    refuse_unsupported(body)
    if body.store and not state.responses.max_bytes:
        raise ApiError(400, "this server stores no responses (--response_store_bytes 0): send store false",
                       param="store")  # fmt: skip
    before: list[PlainMessage] = []
    if body.previous_response_id is not None:
        before = list(state.responses.get(body.previous_response_id, "previous_response_id").messages)
    generation, parser = await _begin(body, before, state)
    response = _response(body, generation, bool(state.responses.max_bytes) and body.store is not False)

    def keep(done: ResponseObject) -> None:
        if done.store:
            messages = [*before, *plain_input(body.input), *plain_output(done.output)]
            state.responses.put(dump(done), _input_items(body), messages)

    work = ResponseAnswer(response, generation, parser, keep)
    log = request.state.log
    if body.stream:
        return EventStream(work.events(log), last=b"")
    answer = await unless_disconnected(request, work.whole())
    generation.note(log)
    return JSONResponse(dump(answer))


async def _begin(
    body: ResponsesRequest, before: list[PlainMessage], state: ServerState
) -> tuple[Generation, OutputParser]:
    try:
        generation, [parser] = await begin(chat_request(body, before), state)
    except ApiError as error:
        error.param = PARAMS.get(error.param or "", error.param)
        raise
    return generation, parser


def _response(body: ResponsesRequest, generation: Generation, store: bool) -> ResponseObject:
    [params] = generation.params
    sent = body.model_dump(
        include={"instructions", "max_output_tokens", "max_tool_calls", "previous_response_id", "metadata", "tools",
                 "tool_choice", "parallel_tool_calls", "top_logprobs", "user"},
        exclude_none=True,
    )  # fmt: skip
    response = ResponseObject(
        model=generation.model.name, store=store, temperature=params.temperature, top_p=params.top_p, **sent
    )
    if body.text and body.text.format:
        response.text = {"format": body.text.format.model_dump(exclude_none=True, by_alias=True)}
    if body.reasoning:
        response.reasoning |= body.reasoning.model_dump(include={"effort", "summary"})
    return response


def _input_items(body: ResponsesRequest) -> list[dict[str, Any]]:
    if isinstance(body.input, str):
        content = [{"type": "input_text", "text": body.input}]
        return [{"id": new_id("msg"), "type": "message", "role": "user", "content": content}]
    return [{"id": new_id("item"), **item.model_dump(exclude_none=True)} for item in body.input]


_STORED = documented(404)


@router.get("/v1/responses/{id}", responses=_STORED)
async def retrieve(id: str, request: Request) -> dict[str, Any]:
    """A stored response."""
    return state_of(request).responses.get(id).response


@router.get("/v1/responses/{id}/input_items", responses=_STORED)
async def input_items(id: str, request: Request) -> dict[str, Any]:
    """What a stored response answered to, without earlier responses."""
    items = state_of(request).responses.get(id).input
    ends = {"first_id": items[0]["id"], "last_id": items[-1]["id"]}
    return {"object": "list", "data": items, "has_more": False, **ends}


@router.delete("/v1/responses/{id}", responses=_STORED)
async def delete(id: str, request: Request) -> dict[str, Any]:
    state_of(request).responses.delete(id)
    return {"id": id, "object": "response", "deleted": True}
