"""How many completions the server holds: what it cannot hold is refused with numbers, nothing waits unseen."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from llmc.server.errors import ApiError


class Admission:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self.refused = 0
        self.draining = False

    @contextlib.contextmanager
    def admit(self, count: int) -> Iterator[None]:
        """Holds `count` places, or raises ApiError: 400 when they never fit, 429 when they do not fit now."""
        if self.draining:
            raise ApiError(503, "the server is shutting down: ask another one", code="shutting_down")
        if count > self.limit:
            raise ApiError(
                400, f"the request asks for {count} completions at once; this server holds {self.limit}: send fewer"
            )
        if self.held + count > self.limit:
            self.refused += 1
            raise ApiError(
                429,
                f"{self.held} completions wait or run, the limit is {self.limit}: {count} more do not fit, try later",
                code="queue_full",
            )
        self.held += count
        try:
            yield
        finally:
            self.held -= count
