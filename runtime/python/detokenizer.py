"""Token ids to text as they come: whole characters only, bounded work per token."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

# A character has at most four UTF-8 bytes, so this many tokens without a whole
# one mean bytes that are no UTF-8: they are emitted as U+FFFD.
_MAX_PENDING = 8


class IncrementalDetokenizer:
    """Decodes over a short window, because a token's text depends on its neighbours.

    ``ids[prefix:read]`` are known and give the context (SentencePiece drops the space of a first
    token), ``ids[read:]`` are pending: their bytes do not end on a character yet.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], hidden_ids: Collection[int] = frozenset()) -> None:
        self._decode = decode
        self._hidden = hidden_ids  # special tokens, which have no text
        self._known: list[int] = []
        self._known_text = ""  # decode(known)
        self._pending: list[int] = []

    def push(self, token: int) -> str:
        """The text that ``token`` completes, often empty inside a character."""
        if token in self._hidden:
            return ""
        self._pending.append(token)
        text = self._decode(self._known + self._pending)
        if text.endswith("\ufffd") and len(self._pending) < _MAX_PENDING:
            return ""
        return self._accept(text)

    def finish(self) -> str:
        """What is left: bytes that never became a character."""
        return self._accept(self._decode(self._known + self._pending)) if self._pending else ""

    def _accept(self, text: str) -> str:
        delta = text[len(self._known_text) :]
        self._known, self._pending = self._pending, []
        self._known_text = self._decode(self._known)
        return delta
