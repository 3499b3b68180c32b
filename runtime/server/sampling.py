"""A request's sampling fields as SamplingParams, and what is refused."""

from __future__ import annotations

import dataclasses

from llmc.runtime import SamplingParams
from llmc.server.errors import ApiError
from llmc.server.models import ServedModel
from llmc.server.protocol import ChatRequest, CompletionRequest, Sampling

_SAME = ("temperature", "top_p", "top_k", "min_p", "stop")


def sampling_params(request: Sampling, model: ServedModel, max_tokens: int, logprobs: int | None) -> SamplingParams:
    """The request's values over what the model's generation_config.json recommends."""
    refuse_unsupported(request)
    chosen = {name: value for name in _SAME if (value := getattr(request, name)) is not None}
    return dataclasses.replace(
        model.llm.get_default_sampling_params(),
        max_tokens=max_tokens,
        seed=None if request.seed is None else request.seed % 2**64,
        stop_token_ids=list(request.stop_token_ids),
        include_stop_str_in_output=request.include_stop_str_in_output,
        skip_special_tokens=request.skip_special_tokens,
        ignore_eos=request.ignore_eos,
        logprobs=logprobs,
        **chosen,
    )


def copies(params: SamplingParams, n: int) -> list[SamplingParams]:
    """Parameters of the n answers to one prompt: seeds that follow each other."""
    if params.seed is None:
        return [params] * n
    return [dataclasses.replace(params, seed=(params.seed + i) % 2**64) for i in range(n)]


def refuse_unsupported(request: Sampling) -> None:
    """Fields that would change the answer and cannot yet."""

    def refuse(name: str, neutral: str) -> None:
        raise ApiError(400, f"{name} is not supported yet: leave it out or send {neutral}", param=name)

    for name in ("frequency_penalty", "presence_penalty"):
        if getattr(request, name):
            refuse(name, "0")
    if request.logit_bias:
        refuse("logit_bias", "null")
    if isinstance(request, CompletionRequest):
        if request.suffix:
            refuse("suffix", "null")
        if request.best_of not in (None, request.n):
            refuse("best_of", "the value of n")
        if request.logprobs:
            refuse("logprobs", "0 for the chosen tokens' log probabilities")
    if isinstance(request, ChatRequest):
        if request.top_logprobs:
            refuse("top_logprobs", "0 with logprobs=true for the chosen tokens'")
        if request.response_format and request.response_format.get("type") != "text":
            refuse("response_format", '{"type": "text"}')
        if request.modalities not in (None, ["text"]):
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
