"""Which requests a run sends: lengths, random prompts, datasets, what does not fit."""

from __future__ import annotations

import json
import random
import statistics
from pathlib import Path

import pytest

from llmc.compiler.benchmark.dataset import read_dataset
from llmc.compiler.benchmark.lengths import Lengths
from llmc.compiler.benchmark.workload import WorkItem, fitted, synthetic, tokenized
from llmc.errors import OptionError


def drawn(text: str, count: int = 4000) -> list[int]:
    return Lengths.parse("--input_len", text).draw(random.Random(1), count)


def test_fixed_lengths() -> None:
    assert drawn("128", 5) == [128] * 5


def test_a_range_reaches_both_ends_equally_often() -> None:
    found = drawn("3-6")
    assert set(found) == {3, 4, 5, 6}
    assert all(900 < found.count(length) < 1100 for length in (3, 4, 5, 6))


def test_normal_lengths() -> None:
    found = drawn("normal:100:20")
    assert abs(statistics.fmean(found) - 100) < 2
    assert abs(statistics.stdev(found) - 20) < 1.5
    assert min(drawn("normal:3:10")) == 1


@pytest.mark.parametrize("text", ["", "0", "9-3", "-5", "normal:0:0", "normal:5", "normal:x:2", "1.5", "ten"])
def test_bad_lengths(text: str) -> None:
    with pytest.raises(OptionError, match=r"--input_len: expected .* found"):
        Lengths.parse("--input_len", text)


def test_random_prompts_differ_but_for_their_prefix() -> None:
    def make(seed: int, prefix: int = 0) -> list[WorkItem]:
        return synthetic(Lengths(10, 20), Lengths(7, 7), 50, 64, random.Random(seed), prefix)

    items = make(0)
    assert items == make(0) != make(1)
    assert all(10 <= len(item.prompt) <= 20 and item.output_tokens == 7 for item in items)
    assert all(3 <= id < 64 for item in items for id in item.prompt)
    assert len({tuple(item.prompt) for item in items}) == 50
    shared = make(0, prefix=30)
    assert len({tuple(item.prompt[:30]) for item in shared}) == 1
    assert len({tuple(item.prompt[30:]) for item in shared}) == 50
    assert all(40 <= len(item.prompt) <= 50 for item in shared)


def test_what_does_not_fit() -> None:
    items = [WorkItem(list(range(prompt)), answer) for prompt, answer in ((5, 5), (8, 5), (20, 3))]
    with pytest.raises(OptionError, match=r"2 of 3 requests do not fit: expected at most 10 tokens.*found 20 \+ 3"):
        fitted(items, 10, "error")
    assert fitted(items, 10, "skip") == items[:1]
    clipped = [(len(item.prompt), item.output_tokens) for item in fitted(items, 10, "clip")]
    assert clipped == [(5, 5), (8, 2), (9, 1)]
    with pytest.raises(OptionError, match="none of 1 requests fits 2 tokens"):
        fitted(items[2:], 2, "skip")
    assert fitted(items, 23, "error") == items


def test_a_dataset_in_the_layout_of_trtllm_bench(tmp_path: Path) -> None:
    rows = [
        {"task_id": 0, "prompt": "abc", "output_tokens": 4},
        {"task_id": 1, "input_ids": [7, 8], "output_tokens": 5},
        {"task_id": 2, "logits": [9], "output_tokens": 6},
    ]
    path = tmp_path / "set.jsonl"
    path.write_text("\n\n".join(map(json.dumps, rows)))
    items = [WorkItem("abc", 4), WorkItem([7, 8], 5), WorkItem([9], 6)]
    assert read_dataset(path) == items
    assert read_dataset(path, limit=2) == items[:2]
    assert tokenized(items, lambda text: list(text.encode())) == [WorkItem([97, 98, 99], 4), *items[1:]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "set.jsonl:2: expected a line of JSON, found"),
        ("[1]", "set.jsonl:2: expected a JSON object, found list"),
        ('{"prompt": "a"}', "set.jsonl:2: output_tokens: expected a whole number of 1 or more, found None"),
        ('{"prompt": "a", "output_tokens": true}', "output_tokens: expected a whole number of 1 or more, found True"),
        ('{"prompt": "", "output_tokens": 1}', "expected a line like .* found the fields prompt, output_tokens"),
        ('{"input_ids": [1, "b"], "output_tokens": 1}', "expected a line like"),
    ],
)
def test_bad_datasets(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text('{"prompt": "a", "output_tokens": 1}\n' + line)
    with pytest.raises(OptionError, match=message):
        read_dataset(path)


def test_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"cannot read .*No such file"):
        read_dataset(tmp_path / "none")
    (tmp_path / "empty").touch()
    with pytest.raises(OptionError, match=r"expected lines like .*found none"):
        read_dataset(tmp_path / "empty")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\n")
    with pytest.raises(OptionError, match="expected lines of JSON in UTF-8"):
        read_dataset(tmp_path / "bytes")
