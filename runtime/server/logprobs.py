"""Log probabilities in the two shapes of the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llmc.runtime.outputs import CompletionDelta
from llmc.runtime.tokenizer import Tokenizer
from llmc.server.protocol import CompletionLogprobs, LikelyToken, TokenLogprob


class TextLogprobs:
    """Of one text completion; offsets count characters of the answer, an echoed prompt included."""

    def __init__(self, tokenizer: Tokenizer | None, start: int = 0) -> None:
        self._tokenizer, self._offset = tokenizer, start

    def take(
        self,
        ids: Sequence[int],
        logprobs: Sequence[float | None] | None,
        largest: Sequence[Mapping[int, float] | None] | None,
    ) -> CompletionLogprobs | None:
        if logprobs is None:
            return None
        found = CompletionLogprobs(top_logprobs=None if largest is None else [])
        for i, (id, logprob) in enumerate(zip(ids, logprobs, strict=True)):
            text = token_text(self._tokenizer, id)
            found.tokens.append(text)
            found.token_logprobs.append(logprob)
            found.text_offset.append(self._offset)
            if self._tokenizer is None or id not in self._tokenizer.special_ids:  # others are not shown
                self._offset += len(text)
            if found.top_logprobs is not None and largest is not None:
                found.top_logprobs.append(self._named(largest[i], id, logprob))
        return found

    def _named(self, largest: Mapping[int, float] | None, id: int, logprob: float | None) -> dict[str, float] | None:
        """By text, the likeliest first; the chosen token is always there."""
        if largest is None or logprob is None:
            return None
        named: dict[str, float] = {}
        for other, value in [*largest.items(), (id, logprob)]:
            named.setdefault(token_text(self._tokenizer, other), value)  # of equal texts the likelier
        return named


def chat_logprobs(tokenizer: Tokenizer, news: CompletionDelta) -> list[TokenLogprob]:
    found = []
    for i, (id, logprob) in enumerate(zip(news.token_ids, news.logprobs or [], strict=True)):
        largest = news.top_logprobs[i].items() if news.top_logprobs is not None else ()
        top = [_likely(tokenizer, other, value) for other, value in largest]
        found.append(TokenLogprob(**_likely(tokenizer, id, logprob).model_dump(), top_logprobs=top))
    return found


def _likely(tokenizer: Tokenizer, id: int, logprob: float) -> LikelyToken:
    # JSON has no infinity; a token that cannot come is as unlikely as OpenAI's API can say.
    data = tokenizer.token_bytes(id)
    return LikelyToken(token=data.decode(errors="replace"), logprob=max(logprob, -9999.0), bytes=list(data))


def token_text(tokenizer: Tokenizer | None, id: int) -> str:
    return str(id) if tokenizer is None else tokenizer.token_bytes(id).decode(errors="replace")
