"""Lengths and moments of real requests: traces in the formats of Azure and of Mooncake.

Azure (AzurePublicDataset, LLM inference traces): CSV with the columns TIMESTAMP, ContextTokens, GeneratedTokens.
Mooncake (FAST'25): JSON lines {"timestamp": milliseconds, "input_length", "output_length", "hash_ids"}; equal
hash_ids are equal blocks of 512 prompt tokens, so they say what a prefix cache can find.
"""

from __future__ import annotations

import csv
import datetime
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmc.compiler.benchmark.dataset import json_lines, positive
from llmc.compiler.benchmark.workload import WorkItem, random_tokens
from llmc.errors import OptionError

MOONCAKE_BLOCK = 512
_COLUMNS = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"]
_FORMATS = (
    f"a CSV file that begins with {','.join(_COLUMNS)} (Azure) or lines of JSON with timestamp, input_length, "
    "output_length and perhaps hash_ids (Mooncake)"
)


@dataclass(frozen=True)
class TraceRow:
    arrival: float  #: seconds after the first
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()  #: names of the prompt's blocks of MOONCAKE_BLOCK tokens; none: nothing in common


def read_trace(path: Path, limit: int | None = None) -> list[TraceRow]:
    """The first `limit` requests by arrival. Raises OptionError with file and line."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            first = file.readline()
    except OSError as error:
        raise OptionError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise OptionError(f"{path}: expected {_FORMATS}, found a file that is no UTF-8 text") from None
    if first.lstrip().startswith("{"):
        rows = [_mooncake(place, row) for place, row in json_lines(path)]
    elif [name.strip() for name in first.split(",")] == _COLUMNS:
        rows = list(_azure(path))
    else:
        raise OptionError(f"{path}: expected {_FORMATS}, found {first[:60].strip()!r}")
    if not rows:
        raise OptionError(f"{path}: expected {_FORMATS}, found no requests")
    rows.sort(key=lambda row: row.arrival)
    start = rows[0].arrival
    return [TraceRow(row.arrival - start, row.input_tokens, row.output_tokens, row.blocks) for row in rows[:limit]]


def _azure(path: Path) -> Iterator[TraceRow]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        for row in (reader := csv.DictReader(file, skipinitialspace=True)):
            place = f"{path}:{reader.line_num}"
            values: dict[str, Any] = {
                name: int(text) if (text := (row.get(name) or "").strip()).isdecimal() else text
                for name in _COLUMNS[1:]
            }
            inputs, outputs = (positive(place, values, name) for name in _COLUMNS[1:])
            yield TraceRow(_moment(place, row[_COLUMNS[0]] or ""), inputs, outputs)


def _moment(place: str, text: str) -> float:
    # Seven digits of a second: more than Python 3.10 reads.
    whole, _, fraction = text.strip().partition(".")
    try:
        seconds = datetime.datetime.fromisoformat(whole).replace(tzinfo=datetime.timezone.utc).timestamp()
        return seconds + (float(f"0.{fraction}") if fraction else 0.0)
    except ValueError:
        raise OptionError(f"{place}: TIMESTAMP: expected 2023-11-16 18:15:46.6805900, found {text!r}") from None


def _mooncake(place: str, row: dict[str, Any]) -> TraceRow:
    moment = row.get("timestamp")
    if not isinstance(moment, (int, float)) or isinstance(moment, bool) or moment < 0:
        raise OptionError(f"{place}: timestamp: expected milliseconds, found {moment!r}")
    length = positive(place, row, "input_length")
    blocks = row.get("hash_ids", [])
    if not isinstance(blocks, list) or not all(isinstance(one, int) for one in blocks):
        raise OptionError(f"{place}: hash_ids: expected a list of whole numbers, found {blocks!r}")
    if blocks and len(blocks) != -(-length // MOONCAKE_BLOCK):
        raise OptionError(
            f"{place}: hash_ids: expected one for each {MOONCAKE_BLOCK} of {length} tokens, found {len(blocks)}"
        )
    return TraceRow(moment / 1e3, length, positive(place, row, "output_length"), tuple(blocks))


def trace_items(rows: list[TraceRow], vocab_size: int, seed: int) -> list[WorkItem]:
    """Random prompts of the trace's lengths; equal blocks have equal tokens."""
    rng = random.Random(seed)

    def prompt(row: TraceRow) -> list[int]:
        if not row.blocks:
            return random_tokens(rng, row.input_tokens, vocab_size)
        ids: list[int] = []
        for block in row.blocks:
            # Made again each time: the tokens of a whole trace would fill the memory.
            ids += random_tokens(random.Random(f"{seed} {block}"), MOONCAKE_BLOCK, vocab_size)
        return ids[: row.input_tokens]

    return [WorkItem(prompt(row), row.output_tokens, row.arrival) for row in rows]
