"""SamplingParams as the runtime takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llmc.runtime import _runtime
from llmc.runtime.sampling_params import SamplingParams
from llmc.runtime.tokenizer import Tokenizer

_SAME = (
    "max_tokens", "min_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "ignore_eos", "repetition_penalty",
    "presence_penalty", "frequency_penalty", "no_repeat_ngram_size", "retention_priority",
    "beam_width", "length_penalty",
)  # fmt: skip


class Guarded:
    """A user's function; keeps the exception that it raised, which cannot travel through the engine."""

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function
        self.error: BaseException | None = None

    def __call__(self, *arguments: Any) -> None:
        try:
            self._function(*arguments)
        except BaseException as error:
            self.error = error
            raise


def sampling_options(
    params: SamplingParams, tokenizer: Tokenizer | None
) -> tuple[_runtime.SamplingOptions, list[Guarded]]:
    """Also the functions of `params`, to look for their exceptions.

    tokenizer: for bad_words that are texts. Raises ValueError for what has the wrong type.
    """
    options = _runtime.SamplingOptions()
    for name in _SAME:
        _set(options, name, getattr(params, name))
    for name in ("logprobs", "prompt_logprobs"):
        value = getattr(params, name)
        _set(options, name, -1 if value is None else value)
    _set(options, "early_stopping", 2 if params.early_stopping == "never" else int(params.early_stopping))
    _set(options, "stop_token_ids", list(params.stop_token_ids))
    _set(options, "allowed_token_ids", list(params.allowed_token_ids or []))
    if params.allowed_token_ids is not None and not params.allowed_token_ids:
        raise ValueError("allowed_token_ids must be None or name a token, found an empty list")
    _set(options, "logit_bias", [(int(id), float(bias)) for id, bias in (params.logit_bias or {}).items()])
    _set(options, "bad_words", _bad_words(params.bad_words or [], tokenizer))
    guards = []
    for name in ("token_mask", "logits_processor"):
        if (function := getattr(params, name)) is not None:
            guards.append(Guarded(function))
            setattr(options, name, guards[-1])
    return options, guards


def _set(options: _runtime.SamplingOptions, name: str, value: Any) -> None:
    try:
        setattr(options, name, value)
    except TypeError:
        raise ValueError(f"{name} has the wrong type or is out of range: found {value!r}") from None


def _bad_words(words: Sequence[str | Sequence[int]], tokenizer: Tokenizer | None) -> list[list[int]]:
    found: list[list[int]] = []
    for word in words:
        if not isinstance(word, str):
            found.append([int(id) for id in word])
            continue
        if tokenizer is None:
            raise ValueError("bad_words that are texts need a tokenizer: pass token ids instead")
        if not word:
            raise ValueError("bad_words must not be empty")
        # A word in the middle of a text begins with the space before it.
        for text in (word, f" {word}"):
            ids = tokenizer.encode(text, add_special_tokens=False)
            if ids not in found:
                found.append(ids)
    return found
