"""Figures of a run: rates, and percentiles of the latencies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from llmc.compiler.benchmark.records import Record
from llmc.errors import OptionError

#: Name in reports -> the values of one request.
LATENCIES: Mapping[str, Callable[[Record], Iterable[float]]] = {
    "ttft": lambda one: [one.time_to_first_token],
    "itl": lambda one: one.gaps(),
    "tpot": lambda one: [] if one.time_per_output_token is None else [one.time_per_output_token],
    "e2e": lambda one: [one.end_to_end],
}
#: Short name -> what tables call it.
TITLES = {
    "ttft": "time to first token",
    "itl": "token to token",
    "tpot": "time per output token",
    "e2e": "end to end",
}
PERCENTILES = (50, 90, 99)

NO_TOKEN = "no token came"

#: Latency name -> seconds that a request must stay below.
Objectives = Mapping[str, float]


def spread(values: Sequence[float]) -> dict[str, float]:
    """Mean, p50, p90, p99 and maximum (percentiles by linear interpolation); empty without values."""
    if not values:
        return {}
    array = np.asarray(values, dtype=np.float64)
    found = {"mean": float(array.mean())}
    found |= {f"p{p}": float(v) for p, v in zip(PERCENTILES, np.percentile(array, PERCENTILES), strict=True)}
    return found | {"max": float(array.max())}


def meets(record: Record, objectives: Objectives) -> bool:
    """Whether a request was answered and stayed below every objective; for gaps their largest counts."""
    return record.ok and all(max(LATENCIES[name](record), default=0.0) <= limit for name, limit in objectives.items())


def summarize(records: Sequence[Record], seconds: float, objectives: Objectives | None = None) -> dict[str, Any]:
    """Figures over the `seconds` of a run; latencies in seconds. Failed requests count nowhere else."""
    done = [record for record in records if record.ok]
    seconds = max(seconds, 1e-9)  # where nothing could even be sent
    inputs = sum(record.input_tokens for record in done)
    outputs = sum(record.output_tokens for record in done)
    figures: dict[str, Any] = {
        "requests": len(done),
        "failed": len(records) - len(done),
        "errors": _errors(records),
        "short_answers": sum(record.output_tokens < record.asked_tokens for record in done),
        "seconds": seconds,
        "input_tokens": inputs,
        "output_tokens": outputs,
        "cached_tokens": sum(record.cached_tokens for record in done),
        "requests_per_second": len(done) / seconds,
        "output_tokens_per_second": outputs / seconds,
        "tokens_per_second": (inputs + outputs) / seconds,
        "latency": {
            name: spread([value for record in done for value in values(record)]) for name, values in LATENCIES.items()
        },
    }
    if objectives:
        good = sum(meets(record, objectives) for record in records)
        figures["goodput"] = {
            "objectives": dict(objectives),
            "requests_per_second": good / seconds,
            "share": good / len(records),
        }
    return figures


def _errors(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Kind of failure, most frequent first -> how many, and what the first one said."""
    failed = [record for record in records if not record.ok]
    kinds = Counter(record.error or NO_TOKEN for record in failed)
    said = {record.error or NO_TOKEN: record.detail for record in reversed(failed)}
    return {kind: {"count": count, "example": said[kind]} for kind, count in kinds.most_common()}


def parse_objectives(words: Sequence[str], option: str = "--goodput") -> dict[str, float]:
    """`ttft:500 tpot:50` in milliseconds, as vLLM writes them. Raises OptionError."""
    found: dict[str, float] = {}
    for word in words:
        name, _, limit = word.partition(":")
        name = {"e2el": "e2e"}.get(name, name)
        try:
            milliseconds = float(limit)
        except ValueError:
            milliseconds = 0.0
        if name not in LATENCIES or not 0 < milliseconds < float("inf") or name in found:
            raise OptionError(
                f"{option}: expected {', '.join(f'{one}:MS' for one in LATENCIES)} once each, in milliseconds, "
                f"found {word!r}"
            )
        found[name] = milliseconds / 1e3
    return found
