"""When requests come: random arrivals, and traces of real ones."""

from __future__ import annotations

import itertools
import json
import random
import statistics
from pathlib import Path

import pytest

from llmc.compiler.benchmark.arrivals import at_rate, sped_up
from llmc.compiler.benchmark.traces import TraceRow, read_trace, trace_items
from llmc.compiler.benchmark.workload import WorkItem
from llmc.errors import OptionError

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
2023-11-16 18:16:00,879,55
"""


def gaps(rate: float, burstiness: float = 1.0, count: int = 20_000) -> list[float]:
    items = at_rate([WorkItem([3], 1)] * count, rate, random.Random(4), burstiness)
    moments = [item.arrival or 0.0 for item in items]
    assert moments[0] == 0 and moments == sorted(moments)
    return [after - before for before, after in itertools.pairwise(moments)]


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 16.0])
def test_random_arrivals_have_the_rate_and_the_spread_of_a_gamma_distribution(burstiness: float) -> None:
    found = gaps(8.0, burstiness)
    # The relative error of a mean of 20,000 gaps is 1 / sqrt(20,000 * burstiness), 1.4 % at most: five of these.
    assert statistics.fmean(found) == pytest.approx(1 / 8, rel=0.07)
    assert statistics.stdev(found) / statistics.fmean(found) == pytest.approx(burstiness**-0.5, rel=0.1)


def test_another_rate_stretches_the_same_arrivals() -> None:
    assert gaps(2.0, count=50) == pytest.approx([4 * gap for gap in gaps(8.0, count=50)])


def test_azure(tmp_path: Path) -> None:
    path = tmp_path / "azure.csv"
    path.write_bytes(AZURE.replace("\n", "\r\n").encode())
    rows = read_trace(path)
    assert [(row.input_tokens, row.output_tokens) for row in rows] == [(374, 44), (396, 109), (879, 55)]
    assert [row.arrival for row in rows] == pytest.approx([0, 4.314579, 13.31941], abs=1e-5)
    assert read_trace(path, limit=2) == rows[:2]


def test_mooncake(tmp_path: Path) -> None:
    path = tmp_path / "mooncake.jsonl"
    lines = [
        {"timestamp": 5000, "input_length": 600, "output_length": 7, "hash_ids": [1, 2]},
        {"timestamp": 3500, "input_length": 1024, "output_length": 9, "hash_ids": [1, 3]},
        {"timestamp": 6000, "input_length": 20, "output_length": 1},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    rows = read_trace(path)
    assert rows == [
        TraceRow(0.0, 1024, 9, (1, 3)),
        TraceRow(1.5, 600, 7, (1, 2)),
        TraceRow(2.5, 20, 1),
    ]
    first, second, third = trace_items(rows, 1000, seed=7)
    assert [len(item.prompt) for item in (first, second, third)] == [1024, 600, 20]
    assert [item.arrival for item in (first, second, third)] == [0.0, 1.5, 2.5]
    assert first.prompt[:512] == second.prompt[:512]
    assert first.prompt[512:600] != second.prompt[512:]
    assert trace_items(rows, 1000, seed=8)[0].prompt != first.prompt
    assert [item.arrival for item in sped_up([first, second, third], 2.0)] == [0.0, 0.75, 1.25]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "expected a CSV file that begins with .* found 'a,b'"),
        (AZURE.splitlines()[0] + "\n", "found no requests"),
        (AZURE.replace("396", "-4"), "trace:3: ContextTokens: expected a whole number of 1 or more, found '-4'"),
        (AZURE.replace("44", "0"), "trace:2: GeneratedTokens: expected a whole number of 1 or more, found 0"),
        (AZURE.replace("2023-11-16 18:16:00", "noon"), "trace:4: TIMESTAMP: expected 2023.* found 'noon'"),
        ('{"input_length": 5}', "trace:1: timestamp: expected milliseconds, found None"),
        ('{"timestamp": 0, "input_length": 0}', "trace:1: input_length: expected"),
        ('{"timestamp": 0, "input_length": 513, "output_length": 1, "hash_ids": [1]}',
         "trace:1: hash_ids: expected one for each 512 of 513 tokens, found 1"),
        ('{"timestamp": 0, "input_length": 5, "hash_ids": 7}', "hash_ids: expected a list of whole numbers, found 7"),
    ],
)  # fmt: skip
def test_bad_traces(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "trace").write_text(text)
    with pytest.raises(OptionError, match=message):
        read_trace(tmp_path / "trace")


def test_no_trace(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cannot read"):
        read_trace(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(OptionError, match="no UTF-8 text"):
        read_trace(tmp_path / "bytes")
