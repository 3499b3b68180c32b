"""Schedules of linears: what is legal, what the cost model says, what the table of measurements says."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise

import pytest

from llmc.codegen.chips import HOPPER
from llmc.codegen.sm90 import linear_large, linear_schedule, linear_small, schedule_table
from llmc.codegen.sm90.linear_schedule import LinearProblem, candidates, cost, from_json, to_json, why_invalid
from llmc.codegen.sm90.schedule_table import Entry, ScheduleTable, load, shipped
from llmc.errors import CompileError

SHAPES = [
    (6144, 4096, "16bit"), (4096, 4096, "residual"), (28672, 4096, "glu"), (4096, 14336, "residual"),
    (128256, 4096, "f32"), (8192, 28672, "residual"), (72, 264, "16bit"), (960, 576, "16bit"), (1536, 576, "glu"),
    (16, 8, "glu"),
]  # fmt: skip
FLOAT8 = [LinearProblem(n, max(k, 16), epilogue, element_bytes=1) for n, k, epilogue in SHAPES]
PROBLEMS = [LinearProblem(*shape) for shape in SHAPES] + FLOAT8


def test_the_target_describes_the_chip():
    from llmc.compiler.targets import find_target

    assert find_target("sm_90").chip == HOPPER


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("tokens", [1, 8, 33, 64, 100, 128, 129, 1000, 16384, 100000])
def test_candidates_are_legal_and_cheapest_first(problem, tokens):
    found = candidates(problem, tokens)
    assert found
    assert all(why_invalid(s, problem, tokens) is None for s in found)
    costs = [cost(s, problem, tokens) for s in found]
    assert all(a <= b + 1e-3 for a, b in pairwise(costs))
    assert all(math.isfinite(c) and c > 0 for c in costs)


def test_blocks_hold_whole_groups():
    problem = replace(LinearProblem(4096, 4096, "residual"), group=48)
    for tokens in (8, 64):
        small = [s for s in candidates(problem, tokens) if isinstance(s, linear_small.Config)]
        assert small
        assert all(s.rows % 48 == 0 for s in small)


SMALL = linear_small.Config(64, 64, 64, 4)
LARGE = linear_large.Config()
PLAIN = LinearProblem(4096, 4096)


@pytest.mark.parametrize(
    ("schedule", "problem", "tokens", "message"),
    [
        (replace(SMALL, rows=56), replace(PLAIN, epilogue="glu"), 64, "multiple of 16"),
        (SMALL, PLAIN, 65, "takes 64 tokens, fewer than 65"),
        (SMALL, replace(PLAIN, group=48), 64, "do not hold groups of 48"),
        (replace(SMALL, split=4), PLAIN, 64, "split"),
        (replace(SMALL, split=2, block_k=128), replace(PLAIN, k=200), 64, "too short for 2 parts"),
        (linear_small.Config(256, 128, 64, 2), PLAIN, 64, "registers"),
        (linear_small.Config(64, 64, 256, 8), PLAIN, 64, "8 stages take"),
        (replace(LARGE, block_m=64), PLAIN, 64, "block_m must be 128 or 192"),
        (replace(LARGE, block_n=40), PLAIN, 64, "multiple of 16 in 16..256"),
        (replace(LARGE, block_m=192), PLAIN, 64, "multiple of 16 in 16..192"),
        (replace(LARGE, stages=5), PLAIN, 64, "5 stages take"),
        (replace(LARGE, buffers=0), PLAIN, 64, "buffers 1 to 8"),
        (replace(LARGE, group=0), PLAIN, 64, "group must be 1 or more"),
        (LARGE, replace(PLAIN, element_bytes=1), 64, "elements of 2 bytes, beside a problem of 1"),
        (replace(LARGE, element_bytes=1), replace(PLAIN, element_bytes=1), 64, "multiple of 16 in 16..160"),
        (replace(SMALL, element_bytes=1), replace(PLAIN, element_bytes=1), 64, "multiple of 128 up to 512"),
        (linear_small.Config(256, 64, 128, 2, element_bytes=1), replace(PLAIN, element_bytes=1), 64, "registers"),
    ],
)
def test_illegal_schedules_say_why(schedule, problem, tokens, message):
    assert message in why_invalid(schedule, problem, tokens)


def test_legality_follows_the_chip():
    assert why_invalid(LARGE, PLAIN, 64) is None
    assert "of 101376 bytes" in why_invalid(LARGE, PLAIN, 64, replace(HOPPER, shared_bytes=101376))
    small = candidates(PLAIN, 4096, replace(HOPPER, shared_bytes=101376))
    assert all(s.shared_bytes <= 101376 for s in small)


def test_fewer_multiprocessors_cost_more():
    half = replace(HOPPER, multiprocessors=66)
    assert cost(LARGE, PLAIN, 8192, half) > 1.9 * cost(LARGE, PLAIN, 8192)


def test_ranges_cover_every_token_count_once():
    for limit in (1, 7, 128, 129, 2048, 16384, 30000):
        following = 1
        for first, last in linear_schedule.ranges(limit):
            assert first == following <= last
            following = last + 1
        assert following == limit + 1


@pytest.mark.parametrize("schedule", [SMALL, LARGE, replace(SMALL, split=2), replace(LARGE, element_bytes=1)])
def test_schedules_as_json(schedule):
    assert from_json(json.loads(json.dumps(to_json(schedule)))) == schedule


# ---- the table ----------------------------------------------------------------------------------


def test_the_shipped_table_is_legal_and_says_where_it_comes_from():
    table = shipped()
    assert table.arch == "sm_90a"
    assert table.entries
    for entry in table.entries:
        run = table.runs[entry.run]
        assert run["device"].startswith("NVIDIA")
        assert run["commit"]
        for tokens, schedule, us in entry.schedules:
            assert why_invalid(schedule, entry.problem, tokens) is None
            assert us > 0


def test_the_cost_model_agrees_with_the_shipped_measurements():
    """Within a factor: with many tokens a chip short of power is slower than the model."""
    for entry in shipped().entries:
        for tokens, schedule, us in entry.schedules:
            expected = cost(schedule, entry.problem, tokens)
            assert 0.6 * us < expected < 1.4 * us, (entry.problem, tokens, us, expected)


def test_the_cost_model_nearly_finds_what_was_measured():
    """By the model, the measured schedule is never far from the cheapest."""
    for entry in shipped().entries:
        for tokens, schedule, _ in entry.schedules:
            best = cost(candidates(entry.problem, tokens)[0], entry.problem, tokens)
            assert cost(schedule, entry.problem, tokens) <= 1.45 * best, (entry.problem, tokens)


@pytest.fixture
def table() -> ScheduleTable:
    schedules = ((64, SMALL, 10.0), (1024, replace(LARGE, block_n=128), 50.0), (4096, LARGE, 200.0))
    entry = Entry(LinearProblem(4096, 4096, "residual"), schedules, 0)
    return ScheduleTable("sm_90a", ({"device": "a GPU", "commit": "abc"},), (entry,))


def test_an_entry_of_the_same_sizes_decides(table):
    problem = LinearProblem(4096, 4096, "residual")
    assert table.choose(problem, 50) == SMALL
    assert table.choose(problem, 64) == SMALL
    assert table.choose(problem, 65) == replace(LARGE, block_n=128)
    assert table.choose(problem, 100000) == LARGE


def test_a_near_entry_decides_where_the_model_sees_no_better_one(table):
    near = LinearProblem(4096, 4352, "residual")
    assert table.choose(near, 4096) == LARGE
    # 1,024 tokens of 4,096 columns are a turn and a half of 128-wide tiles less than the model's choice.
    assert cost(replace(LARGE, block_n=128), near, 1024) > 1.03 * cost(candidates(near, 1024)[0], near, 1024)
    assert table.choose(near, 1024) == candidates(near, 1024)[0]


@pytest.mark.parametrize(
    "problem",
    [
        LinearProblem(4096, 4096, "16bit"),  # another epilogue
        LinearProblem(4096, 4096, "residual", element_bytes=1),  # other operands
        LinearProblem(8192, 4096, "residual"),  # too far
        LinearProblem(4096, 4096, "residual", group=48),  # illegal there
    ],
)
def test_else_the_cost_model_decides(table, problem):
    assert table.measured(problem, 64) is None
    assert table.choose(problem, 64) == candidates(problem, 64)[0]


def test_tables_go_through_files(table, tmp_path):
    path = tmp_path / "table.json"
    narrow = linear_large.deepest(128, 128, element_bytes=1)
    entry = Entry(LinearProblem(4096, 4096, "residual", element_bytes=1), ((4096, narrow, 100.0),), 0)
    both = table.merged(ScheduleTable("sm_90a", ({"device": "another GPU"},), (entry,)))
    assert len(both.entries) == 2
    path.write_text(both.to_json())
    assert load(path) == both
    assert load(path).choose(entry.problem, 4096) == narrow
    assert load(path).choose(table.entries[0].problem, 4096) == LARGE


def test_new_entries_replace_old_ones(table):
    other = ScheduleTable(
        "sm_90a",
        ({"device": "another GPU", "commit": "def"},),
        (
            Entry(LinearProblem(4096, 4096, "residual"), ((8, SMALL, 1.0),), 0),
            Entry(LinearProblem(128, 64), ((8, SMALL, 1.0),), 0),
        ),
    )
    merged = table.merged(other)
    assert [e.problem for e in merged.entries] == [LinearProblem(128, 64), LinearProblem(4096, 4096, "residual")]
    assert merged.runs == other.runs
    assert other.merged(table).runs == (*other.runs, *table.runs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "expected format 1, found 2"),
        ({"linear": [{}]}, "no 'epilogue'"),
        ({"linear": [{"epilogue": "tanh"}]}, "found tanh"),
        ({"linear": [{"epilogue": "f32", "n": 8, "k": 8, "run": 1, "schedules": []}]}, "run 1 of 0"),
        ({"linear": 3}, "not iterable"),
    ],
)
def test_damaged_tables_are_refused(tmp_path, change, message):
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"format": 1, "arch": "sm_90a", "runs": [], "linear": []} | change))
    with pytest.raises(CompileError, match="is no table of schedules") as error:
        load(path)
    assert message in str(error.value)
    path.write_text("{")
    with pytest.raises(CompileError, match="is no table of schedules"):
        load(path)
    with pytest.raises(CompileError, match="cannot read the schedules"):
        load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"family": "middle"}, "family 'small' or 'large', found 'middle'"),
        ({"family": "large", "block_m": "128"}, "expected integers"),
        ({"family": "small", "rows": 64}, "missing"),
        ({"family": "large", "rows": 64}, "unexpected"),
    ],
)
def test_what_is_no_schedule_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        from_json(fields)


def test_kernels_follow_the_table(table):
    from mlir import ir

    from llmc.codegen.sm90 import compile_kernel
    from llmc.compiler.tuning.problems import kernel_text
    from llmc.dialects import register

    with register(ir.Context()), ir.Location.unknown():
        module = ir.Module.parse(kernel_text(LinearProblem(4096, 4096, "residual")))
        kernel = compile_kernel(module.body.operations[0], {"max_num_tokens": 2048}, table=table)
    assert [(v.min_tokens, v.max_tokens) for v in kernel.variants] == [(1, 64), (65, 1024), (1025, None)]
    assert [v.launches[0].entry.shared_bytes for v in kernel.variants][2] > 220000


def test_the_shipped_file_lies_beside_the_code():
    assert schedule_table.SHIPPED.is_file()
