"""Log probabilities in the two shapes of the API."""

from __future__ import annotations

from collections.abc import Sequence

from llmc.runtime.tokenizer import Tokenizer
from llmc.server.protocol import CompletionLogprobs, TokenLogprob


class TextLogprobs:
    """Of text completions; offsets count characters of the answer, `start` of them are echoed prompt."""

    def __init__(self, tokenizer: Tokenizer | None, start: int = 0) -> None:
        self._tokenizer, self._offset = tokenizer, start

    def take(self, ids: Sequence[int], logprobs: Sequence[float] | None) -> CompletionLogprobs | None:
        if logprobs is None:
            return None
        found = CompletionLogprobs()
        for id, logprob in zip(ids, logprobs, strict=True):
            text = _text(self._tokenizer, id)
            found.tokens.append(text)
            found.token_logprobs.append(logprob)
            found.text_offset.append(self._offset)
            self._offset += len(text)
        return found


def chat_logprobs(
    tokenizer: Tokenizer, ids: Sequence[int], logprobs: Sequence[float] | None
) -> list[TokenLogprob] | None:
    if logprobs is None:
        return None
    return [
        TokenLogprob(token=_text(tokenizer, id), logprob=logprob, bytes=list(tokenizer.token_bytes(id)))
        for id, logprob in zip(ids, logprobs, strict=True)
    ]


def _text(tokenizer: Tokenizer | None, id: int) -> str:
    return str(id) if tokenizer is None else tokenizer.token_bytes(id).decode(errors="replace")
