"""What became of one request, in seconds on the clock of its run."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field


@dataclass
class Record:
    """Definitions: time to first token from `sent` to the first token; time per output token (TPOT) from the
    first token to the end over the tokens behind the first; gaps between tokens as they arrive."""

    input_tokens: int
    due: float = 0.0  #: when it was to be sent; `sent` is later where the sender was late or had no room
    sent: float = 0.0
    #: (moment, tokens) of each arrival; tokens of one arrival count as equally far apart.
    arrivals: list[tuple[float, int]] = field(default_factory=list)
    finished: float = 0.0
    output_tokens: int = 0
    cached_tokens: int = 0  #: of the prompt, found in the KV cache
    asked_tokens: int = 0  #: of output
    error: str | None = None  #: the kind of failure, the same for all of a kind
    detail: str = ""  #: what was said about it

    @property
    def ok(self) -> bool:
        return self.error is None and bool(self.arrivals)

    @property
    def late(self) -> float:
        """Seconds by which it was sent after its time."""
        return self.sent - self.due

    def fail(self, error: str, detail: object = "") -> None:
        self.error, self.detail = error, str(detail)[:400]

    @property
    def time_to_first_token(self) -> float:
        return self.arrivals[0][0] - self.sent

    @property
    def time_per_output_token(self) -> float | None:
        """None for an answer of one token."""
        if self.output_tokens < 2:
            return None
        return (self.finished - self.arrivals[0][0]) / (self.output_tokens - 1)

    @property
    def end_to_end(self) -> float:
        return self.finished - self.sent

    def gaps(self) -> list[float]:
        """Seconds between tokens; an arrival of k tokens gives k equal ones."""
        found: list[float] = []
        for (before, _), (moment, tokens) in itertools.pairwise(self.arrivals):
            found += [(moment - before) / tokens] * tokens
        return found
