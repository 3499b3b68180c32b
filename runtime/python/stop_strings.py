"""Stop strings matched on decoded text, so that every segmentation into tokens is found."""

from __future__ import annotations

from collections.abc import Sequence


class StopStringMatcher:
    """Text goes in, text that is safe to show comes out.

    Held back is the longest end of the text that a stop string begins with. The match that ends
    first wins, the longer one among those, so the result does not depend on how the text was cut.
    """

    def __init__(self, stops: Sequence[str], include_in_output: bool = False) -> None:
        self._stops = list(stops)
        self._include = include_in_output
        self._held = ""
        self.matched: str | None = None

    def push(self, text: str) -> str:
        if not self._stops:
            return text
        text = self._held + text
        ends = [(text.find(stop) + len(stop), -len(stop), stop) for stop in self._stops if stop in text]
        if ends:
            end, _, self.matched = min(ends)
            self._held = ""
            return text[: end if self._include else end - len(self.matched)]
        keep = self._longest_beginning(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """What was held back: no stop string came of it."""
        held, self._held = self._held, ""
        return held

    def _longest_beginning(self, text: str) -> int:
        for size in range(min(len(text), max(map(len, self._stops)) - 1), 0, -1):
            end = text[len(text) - size :]
            if any(stop.startswith(end) for stop in self._stops):
                return size
        return 0
