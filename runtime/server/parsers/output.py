"""An answer's text as parts: reasoning, then content and tool calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from llmc.server.parsers.reasoning import reasoning_splitter
from llmc.server.parsers.tools import TOOL_PARSERS, ToolCall


@dataclass(frozen=True)
class Part:
    kind: Literal["reasoning", "content", "tool_call"]
    text: str = ""
    call: ToolCall | None = None


class OutputParser:
    """Of one answer. `prompt` is the rendered conversation. Without parsers all text is content as it is.

    Calls beyond `most_calls` are left out.
    """

    def __init__(
        self, reasoning: str | None, tools: str | None, prompt: str = "", most_calls: int | None = None
    ) -> None:
        self._reasoning = reasoning_splitter(reasoning, prompt) if reasoning else None
        self._tools = TOOL_PARSERS[tools]() if tools else None
        self._thought = False  # reasoning has been seen: the space after it belongs to nobody
        self._started = False
        self._blank = ""  # space before what may be a call
        self._most_calls = most_calls
        self.num_calls = 0

    def push(self, text: str) -> list[Part]:
        if self._reasoning is None:
            return self._content(text)
        return self._split(self._reasoning.push(text))

    def finish(self) -> list[Part]:
        parts = self._split(self._reasoning.finish()) if self._reasoning else []
        if self._tools:
            parts += self._take(self._tools.finish())
            if self._blank and not self.num_calls:
                parts.append(Part("content", self._blank))
                self._blank = ""
        return parts

    def _split(self, pieces: Iterable[tuple[bool, str, bool]]) -> list[Part]:
        parts: list[Part] = []
        for inside, text, _ in pieces:
            if inside:
                self._thought = True
                if text:
                    parts.append(Part("reasoning", text))
            else:
                parts += self._content(text)
        return parts

    def _content(self, text: str) -> list[Part]:
        if self._thought and not self._started:
            text = text.lstrip()
        if not text:
            return []
        self._started = True
        if self._tools is None:
            return [Part("content", text)]
        return self._take(self._tools.push(text))

    def _take(self, pieces: Iterable[str | ToolCall]) -> list[Part]:
        """Space around calls is no content."""
        parts: list[Part] = []
        for piece in pieces:
            if isinstance(piece, ToolCall):
                if self.num_calls == self._most_calls:
                    continue
                self.num_calls += 1
                self._blank = ""
                parts.append(Part("tool_call", call=piece))
                continue
            text = self._blank + piece
            shown = text.rstrip()
            self._blank = text[len(shown) :]
            if shown:
                parts.append(Part("content", shown))
        return parts
