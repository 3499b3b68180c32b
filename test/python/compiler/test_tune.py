"""`llmc tune`: candidates without a GPU, a table out of times, and engines that follow it."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from mlir import ir
from support.tiny_llama import save_config

from llmc.codegen.sm90 import linear_large, linear_small, schedule_table
from llmc.codegen.sm90.linear_schedule import LinearProblem, to_json
from llmc.compiler.cli import main
from llmc.compiler.tuning.problems import kernel_text, name_of, parse
from llmc.compiler.tuning.table import make_table
from llmc.errors import CompileError

PROBLEM = LinearProblem(256, 128, "residual")


@pytest.fixture(scope="module")
def candidates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tune") / "candidates"
    assert (
        main(["tune", "compile", "--linear", "256x128:residual", "--tokens", "8", "300", "-o", str(folder), "-q"]) == 0
    )
    return folder


def test_candidates_are_cubins_with_their_schedules(candidates):
    fields = json.loads((candidates / "candidates.json").read_text())
    assert fields["arch"] == "sm_90a"
    [problem] = fields["problems"]
    assert (problem["n"], problem["k"], problem["epilogue"]) == (256, 128, "residual")
    families = {c["schedule"]["family"] for c in problem["candidates"]}
    assert families == {"small", "large"}
    for candidate in problem["candidates"]:
        assert set(candidate["tokens"]) <= {8, 300}
        assert (candidates / candidate["launch"]["cubin"]).read_bytes().startswith(b"\x7fELF")
        # x, w, then the residual as the epilogue reads it.
        used = json.dumps(candidate["launch"]["args"])
        assert all(f'"operand": {i}' in used for i in range(3))


def test_linears_of_a_model(tmp_path):
    model = save_config(tmp_path / "model", num_hidden_layers=1)
    folder = tmp_path / "candidates"
    assert main(["tune", "compile", str(model), "--tokens", "8", "--most", "1", "-o", str(folder), "-q"]) == 0
    found = json.loads((folder / "candidates.json").read_text())["problems"]
    assert {(p["n"], p["k"], p["epilogue"]) for p in found} == {
        (128, 64, "16bit"), (64, 64, "residual"), (192, 64, "glu"), (64, 96, "residual"), (260, 64, "f32")
    }  # fmt: skip


@pytest.mark.parametrize("element_bytes", [1, 2])
@pytest.mark.parametrize("kind", ["16bit", "f32", "residual", "glu"])
def test_canonical_kernels_are_of_their_kind(kind, element_bytes):
    from llmc.codegen.gpu.body import Body
    from llmc.codegen.gpu.linear_body import LinearBody
    from llmc.dialects import register

    problem = LinearProblem(256, 128, kind, element_bytes=element_bytes)
    with register(ir.Context()), ir.Location.unknown():
        module = ir.Module.parse(kernel_text(problem))
        assert LinearProblem.of(LinearBody(Body(module.body.operations[0]))) == problem
    assert name_of(problem) == f"256x128:{kind}" + (":f8" if element_bytes == 1 else "")
    assert parse(name_of(problem)) == problem


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compile", "-o", "f"], "nothing to tune: name a MODEL"),
        (["compile", "--linear", "12", "-o", "f"], "expected NxK:EPILOGUE"),
        (["compile", "--linear", "64x64:tanh", "-o", "f"], "one of 16bit, f32, residual, glu"),
        (["compile", "--linear", "64x60:f32", "-o", "f"], "multiple of 8"),
        (["compile", "--linear", "64x72:f32:f8", "-o", "f"], "multiple of 16"),
        (["compile", "--linear", "24x64:glu", "-o", "f"], "multiple of 16"),
        (["compile", "--linear", "64x64:f32", "--tokens", "0", "-o", "f"], "--tokens takes numbers of 1 or more"),
        (["compile", "--linear", "64x64:f32", "--target", "host", "-o", "f"], "expected sm_90"),
        (["compile", "no/model", "-o", "f"], "no model at no/model"),
        (["time", "no/folder", "-o", "f"], "no candidates at no/folder"),
        (["time", "f", "--rounds", "0", "-o", "t"], "--rounds 0: expected 1 or more"),
        (["table", "no.json", "-o", "f"], "cannot read no.json"),
    ],
)
def test_wrong_input_is_one_message(capsys, monkeypatch, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["tune", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not list(tmp_path.iterdir())


def test_candidates_want_a_new_folder(capsys, candidates):
    assert main(["tune", "compile", "--linear", "64x64:f32", "-o", str(candidates)]) == 2
    assert "is not empty" in capsys.readouterr().err


def test_timing_needs_a_gpu(capsys, monkeypatch, candidates, tmp_path):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["tune", "time", str(candidates), "-o", str(tmp_path / "times.json")]) == 2
    assert "expected GPU 0 to time on, found 0" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_timing_needs_the_gpu_of_the_candidates(monkeypatch):
    import torch

    from llmc.compiler.tuning.timing import require_gpu

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (8, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA A100")
    with pytest.raises(CompileError, match=r"for sm_90a, but GPU 0 \(NVIDIA A100\) is sm_80a"):
        require_gpu("sm_90a", 0)


def test_damaged_candidates_are_refused(capsys, tmp_path):
    (tmp_path / "candidates.json").write_text('{"format": 9}')
    assert main(["tune", "time", str(tmp_path), "-o", str(tmp_path / "times.json")]) == 2
    assert "expected format 1, found 9" in capsys.readouterr().err


# ---- from times to a table ----------------------------------------------------------------------

NARROW, WIDE = linear_large.Config(block_n=128), linear_large.Config()
SMALL = linear_small.Config(16, 8, 64, 4)


def report(times: dict[int, list[float]], arch: str = "sm_90a", device: str = "a GPU"):
    """Times of NARROW and WIDE by token count."""
    rows = [{"tokens": t, "us": {str(i): us for i, us in enumerate(values)}} for t, values in times.items()]
    problem = {"n": 256, "k": 128, "epilogue": "residual", "checks": [], "times": rows,
               "schedules": [to_json(NARROW), to_json(WIDE)]}  # fmt: skip
    return {"format": 1, "arch": arch, "run": {"device": device, "commit": "abc"}, "problems": [problem]}


def test_the_fastest_is_picked_and_near_ties_keep_the_schedule():
    table = make_table([report({128: [10.0, 12.0], 256: [20.1, 20.0], 512: [40.0, 30.0]})])
    [entry] = table.entries
    assert entry.problem == PROBLEM
    assert [(last, s) for last, s, _ in entry.schedules] == [(128, NARROW), (256, NARROW), (512, WIDE)]
    assert table.runs[entry.run]["device"] == "a GPU"


def test_several_runs_count_by_their_median():
    reports = [report({128: [10.0, 11.0]}), report({128: [14.0, 11.0]}), report({128: [13.0, 11.0]})]
    [entry] = make_table(reports).entries
    assert entry.schedules == ((128, WIDE, 11.0),)


def test_times_of_two_architectures_do_not_mix():
    with pytest.raises(CompileError, match="of one architecture, found sm_90a, sm_99a"):
        make_table([report({8: [1.0, 1.0]}), report({8: [1.0, 1.0]}, arch="sm_99a")])


def test_a_problem_without_a_correct_candidate_is_no_entry():
    with pytest.raises(CompileError, match="no correct candidate"):
        make_table([report({})])


def test_a_table_over_the_shipped_one(capsys, tmp_path):
    times, table = tmp_path / "times.json", tmp_path / "table.json"
    times.write_text(json.dumps(report({128: [1.0, 2.0]})))
    base = str(schedule_table.SHIPPED)
    assert main(["tune", "table", str(times), "--base", base, "-o", str(table)]) == 0
    merged = schedule_table.load(table)
    assert merged.choose(PROBLEM, 128) == NARROW
    assert len(merged.entries) == len(schedule_table.shipped().entries) + 1
    times.write_text("[]")
    assert main(["tune", "table", str(times), "-o", str(table)]) == 2
    assert "holds no times" in capsys.readouterr().err


# ---- compiling with a table ---------------------------------------------------------------------


def test_an_engine_follows_the_table(tmp_path):
    from llmc.compiler.engine import Engine

    model = save_config(tmp_path / "model", num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1)
    entry = schedule_table.Entry(LinearProblem(192, 64, "glu"), ((8, SMALL, 1.0), (256, NARROW, 2.0)), 0)
    table = schedule_table.ScheduleTable("sm_90a", ({"device": "a GPU", "commit": "abc"},), (entry,))
    (tmp_path / "table.json").write_text(table.to_json())
    options = ["--target", "sm_90", "--strip_weights", "--cache_dir", str(tmp_path / "cache"), "-q"]
    options += ["--max_num_tokens", "256", "--max_batch_size", "8"]
    ranges = {}
    for name, extra in (("with", ["--schedules", str(tmp_path / "table.json")]), ("without", [])):
        assert main(["compile", str(model), *options, *extra, "-o", str(tmp_path / name)]) == 0
        names = [k["name"] for k in Engine(tmp_path / name).plan["kernels"] if k["anchor"] == "linear"]
        ranges[name] = Counter(n.rsplit("_t", 1)[0] for n in names)
    # Gate and up alone have the two ranges of the table.
    changed = {kernel for kernel, count in ranges["with"].items() if count != ranges["without"][kernel]}
    assert len(changed) == 1
    assert ranges["with"][changed.pop()] == 2


@pytest.mark.parametrize(
    ("target", "name", "message"),
    [
        ("host", "table.json", "target host has no measured schedules"),
        ("sm_90", "none.json", "no such file"),
        ("sm_90", "table.json", "is no table of schedules"),
    ],
)
def test_wrong_schedules_are_refused(capsys, monkeypatch, tmp_path, target, name, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.json").write_text("{}")
    model = save_config(tmp_path / "model", num_hidden_layers=1)
    options = ["--target", target, "--schedules", name, "--strip_weights", "--no_cache", "-q"]
    assert main(["compile", str(model), "-o", "engine", *options]) == 2
    assert message in capsys.readouterr().err
