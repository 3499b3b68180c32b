"""Text between two tags, found while the text comes."""

from __future__ import annotations


class TagSplitter:
    """Cuts a text at `start` ... `end`, as often as they come.

    What may be the beginning of the awaited tag is held back until it is one or is not.
    """

    def __init__(self, start: str, end: str, inside: bool = False) -> None:
        self._tags = (start, end)
        self.inside = inside
        self._held = ""

    def push(self, text: str) -> list[tuple[bool, str, bool]]:
        """(inside, text, whether this ends with the end tag) of what is certain by now; texts may be empty."""
        found = []
        self._held += text
        while True:
            tag = self._tags[self.inside]
            before, seen, after = self._held.partition(tag)
            if not seen:
                break
            found.append((self.inside, before, self.inside))
            self._held, self.inside = after, not self.inside
        certain = len(self._held) - _overlap(self._held, tag)
        if certain:
            found.append((self.inside, self._held[:certain], False))
            self._held = self._held[certain:]
        return found

    def finish(self) -> list[tuple[bool, str, bool]]:
        """What was held back."""
        held, self._held = self._held, ""
        return [(self.inside, held, False)] if held else []


def _overlap(text: str, tag: str) -> int:
    """Length of the longest end of `text` that `tag` begins with."""
    for length in range(min(len(text), len(tag) - 1), 0, -1):
        if text.endswith(tag[:length]):
            return length
    return 0
