"""Server-sent events as the HTML standard defines them, as far as OpenAI's API uses them: the `data` field."""

from __future__ import annotations

from collections.abc import Iterator


class EventParser:
    """Feed it bytes as they come; it gives the data of each event that has become whole."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                yield b"\n".join(self._data)
                self._data = []
