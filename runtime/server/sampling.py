"""A request's fields as SamplingParams, and what is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from llmc.runtime import SamplingParams, StructuredOutputs
from llmc.server.errors import ApiError
from llmc.server.models import ServedModel
from llmc.server.parsers import TOOL_PARSERS
from llmc.server.protocol import ChatRequest, CompletionRequest, NamedTool, Sampling

# Fields with the name and the meaning of SamplingParams'. What is not sent is what the model recommends.
_SAME = (
    "temperature", "top_p", "top_k", "min_p", "stop", "frequency_penalty", "presence_penalty", "repetition_penalty",
    "no_repeat_ngram_size", "bad_words", "allowed_token_ids",
)  # fmt: skip


def sampling_params(request: Sampling, model: ServedModel, max_tokens: int, logprobs: int | None) -> SamplingParams:
    """The request's values over what the model's generation_config.json recommends."""
    refuse_unsupported(request)
    best_of = _best_of(request)
    chosen = {name: value for name in _SAME if (value := getattr(request, name)) is not None}
    if request.use_beam_search:
        chosen = _beams(request, best_of) | chosen
        best_of = None
    return dataclasses.replace(
        model.llm.get_default_sampling_params(),
        n=request.n,
        best_of=best_of,
        max_tokens=max_tokens,
        min_tokens=request.min_tokens,
        seed=None if request.seed is None else request.seed % 2**64,
        stop_token_ids=list(request.stop_token_ids),
        include_stop_str_in_output=request.include_stop_str_in_output,
        skip_special_tokens=request.skip_special_tokens,
        ignore_eos=request.ignore_eos,
        logprobs=logprobs,
        logit_bias=_logit_bias(request.logit_bias),
        structured_outputs=_structured(request, model),
        **chosen,
    )


def _beams(request: Sampling, best_of: int | None) -> dict[str, Any]:
    """Beam search draws nothing: what the model recommends for drawing does not count. A single beam is greedy."""
    return {
        "temperature": 0.0,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "beam_width": best_of or request.n,
        "length_penalty": request.length_penalty,
        "early_stopping": request.early_stopping,
    }


def _best_of(request: Sampling) -> int | None:
    if not isinstance(request, CompletionRequest) or request.best_of is None:
        return None
    if request.best_of < request.n:
        raise ApiError(
            400, f"best_of: expected at least n, which is {request.n}, found {request.best_of}", param="best_of"
        )
    if request.stream and request.best_of > request.n and not request.use_beam_search:
        raise ApiError(
            400, "best_of cannot be streamed: send stream false, or best_of with the value of n", param="best_of"
        )
    return request.best_of


def _logit_bias(given: Mapping[str, float] | None) -> dict[int, float] | None:
    if not given:
        return None
    try:
        return {int(id): bias for id, bias in given.items()}
    except ValueError:
        raise ApiError(
            400, f"logit_bias: expected token ids as keys, found {list(given)[:3]}", param="logit_bias"
        ) from None


def _structured(request: Sampling, model: ServedModel) -> StructuredOutputs | None:
    """What the answer must look like, said by structured_outputs, response_format or tool_choice."""
    found: dict[str, StructuredOutputs] = {}
    if request.structured_outputs is not None:
        found["structured_outputs"] = StructuredOutputs(
            **request.structured_outputs.model_dump(exclude_unset=True, by_alias=True)
        )
    form = request.response_format
    if form is not None and form.type == "json_object":
        found["response_format"] = StructuredOutputs(json_object=True)
    elif form is not None and form.type == "json_schema":
        if form.json_schema is None:
            raise ApiError(400, "response_format: expected json_schema beside its type", param="response_format")
        found["response_format"] = StructuredOutputs(json=form.json_schema.schema_ or {})
    if isinstance(request, ChatRequest) and (tools := _called_for(request)):
        assert model.tool_call_parser is not None  # chat.py has refused the others
        found["tool_choice"] = StructuredOutputs(grammar=TOOL_PARSERS[model.tool_call_parser].grammar(tools))
    if len(found) > 1:
        raise ApiError(400, f"{' and '.join(found)} exclude each other: send one of them")
    return next(iter(found.values()), None)


def _called_for(request: ChatRequest) -> list[dict[str, Any]]:
    """Tools one of which must be called."""
    tools = [tool.model_dump(exclude_none=True) for tool in request.tools or []]
    if request.tool_choice == "required":
        return tools
    if isinstance(request.tool_choice, NamedTool):
        return [tool for tool in tools if tool["function"]["name"] == request.tool_choice.function.name]
    return []


def refuse_unsupported(request: Sampling) -> None:
    """Fields that would change the answer and cannot yet."""

    def refuse(name: str, neutral: str) -> None:
        raise ApiError(400, f"{name} is not supported yet: leave it out or send {neutral}", param=name)

    if isinstance(request, CompletionRequest) and request.suffix:
        refuse("suffix", "null")
    if isinstance(request, ChatRequest) and request.modalities not in (None, ["text"]):
        refuse("modalities", '["text"]')


def room(model: ServedModel, prompt_tokens: int, asked: int | None, default: int | None) -> int:
    """Tokens of the answer: what is asked for, else the default, else what the engine has room for."""
    left = model.max_length - prompt_tokens
    if left < 1:
        raise ApiError(
            400,
            f"the prompt has {prompt_tokens} tokens; model '{model.name}' holds {model.max_length} with the answer",
            code="context_length_exceeded",
        )
    if asked is None:
        return min(left, default) if default is not None else left
    if asked > left:
        raise ApiError(
            400,
            f"the prompt has {prompt_tokens} tokens and {asked} are asked for; "
            f"model '{model.name}' holds {model.max_length} in all: ask for {left} or fewer",
            param="max_tokens",
            code="context_length_exceeded",
        )
    return asked
