"""Reads one streamed answer of OpenAI's API into a record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from llmc.compiler.benchmark.records import Record


class Answer:
    """Counts tokens as they arrive.

    Where the server tells its usage with every event, an event counts as what it adds to that. Else each event with
    text is an arrival, and the total that came at the end is spread evenly over them.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self.done = False
        self._running_usage = False
        self._total: int | None = None
        self._finish: str | None = None

    def take(self, data: bytes, moment: float) -> None:
        """One event, or "[DONE]". Raises ValueError for what is neither."""
        if data == b"[DONE]":
            self.done = True
            return
        event = json.loads(data)
        if not isinstance(event, dict):
            raise ValueError(f"expected an object, found {type(event).__name__}")
        if error := event.get("error"):
            self.record.fail("error in the stream", error.get("message") if isinstance(error, Mapping) else error)
            return
        choices = event.get("choices") or []
        self._finish = next((one["finish_reason"] for one in choices if one.get("finish_reason")), self._finish)
        usage = event.get("usage")
        if usage:
            self._use(usage)
            if choices:
                self._running_usage = True
        if self._running_usage:
            new = (self._total or 0) - self.record.output_tokens
        else:
            new = sum(_says_something(one) for one in choices)
        if new > 0:
            self.record.arrivals.append((moment, new))
            self.record.output_tokens += new

    def _use(self, usage: Mapping[str, Any]) -> None:
        self._total = int(usage.get("completion_tokens") or 0)
        self.record.input_tokens = int(usage.get("prompt_tokens") or self.record.input_tokens)
        details = usage.get("prompt_tokens_details") or {}
        self.record.cached_tokens = int(details.get("cached_tokens") or 0)

    def end(self, moment: float) -> None:
        """The connection has ended."""
        record = self.record
        record.finished = moment
        if record.error is None and not self.done and self._finish is None:
            record.fail("stream ended early", "neither [DONE] nor a finish_reason came")
        elif record.error is None and self._finish in ("timeout", "abort", "error"):
            record.fail(f"ended by the server: {self._finish}", f"after {record.output_tokens} tokens")
        if self._total is not None and record.arrivals and self._total > record.output_tokens:
            record.arrivals = _spread([moment for moment, _ in record.arrivals], self._total)
            record.output_tokens = self._total
        if record.arrivals and record.error is None:
            record.finished = record.arrivals[-1][0]  # not what was said behind the last token


def _says_something(choice: Mapping[str, Any]) -> bool:
    delta = choice.get("delta")
    if delta is None:
        return bool(choice.get("text"))
    return any(delta.get(name) for name in ("content", "reasoning_content", "reasoning", "tool_calls"))


def _spread(moments: list[float], tokens: int) -> list[tuple[float, int]]:
    """`tokens` over the moments, as evenly as whole numbers allow; at least one each."""
    count = len(moments)
    return [(moment, tokens * (i + 1) // count - tokens * i // count) for i, moment in enumerate(moments)]
