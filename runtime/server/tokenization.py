"""POST /tokenize and /detokenize."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request

from llmc.server.chat import render
from llmc.server.errors import ApiError, documented
from llmc.server.generation import encode
from llmc.server.protocol import DetokenizeRequest, TokenizeRequest
from llmc.server.state import state_of

router = APIRouter()


_ANSWERS = documented(400, 404, 413)


@router.post("/tokenize", responses=_ANSWERS)
async def tokenize(body: TokenizeRequest, request: Request) -> dict[str, Any]:
    """Token ids of a text, or of a conversation with the chat template around it."""
    model = state_of(request).models.get(body.model)
    if (body.prompt is None) == (body.messages is None):
        raise ApiError(400, "expected one of prompt and messages, found " + ("both" if body.prompt else "neither"))
    if body.prompt is not None:
        ids = await encode(model, body.prompt, body.add_special_tokens)
    else:
        assert body.messages is not None
        tools = body.tools or []
        text = await render(model, body.messages, tools, body.add_generation_prompt, body.chat_template_kwargs)
        ids = await encode(model, text, add_special_tokens=False)
    answer: dict[str, Any] = {"count": len(ids), "max_model_len": model.max_length, "tokens": ids}
    if body.return_token_strs:
        answer["token_strs"] = [model.tokenizer.backend.id_to_token(id) for id in ids]
    return answer


@router.post("/detokenize", responses=_ANSWERS)
async def detokenize(body: DetokenizeRequest, request: Request) -> dict[str, str]:
    """Text of token ids, special tokens included."""
    model = state_of(request).models.get(body.model)
    size = model.tokenizer.backend.get_vocab_size()
    unknown = next((id for id in body.tokens if id >= size), None)
    if unknown is not None:
        raise ApiError(400, f"tokens: expected ids below {size}, found {unknown}", param="tokens")
    text = await asyncio.to_thread(model.tokenizer.decode, body.tokens, False)
    return {"prompt": text}
