import json

import pytest
from support.engine_files import write_small_engine

from llmc.compiler import inspect
from llmc.compiler.cli import main
from llmc.compiler.engine import Engine
from llmc.errors import EngineError


def test_summary_names_target_limits_and_parts(small_engine):
    text = inspect.summary(Engine(small_engine))
    for expected in (
        "host (x86-64)",
        "avx2",
        "max_num_tokens 2,048",
        "weights.safetensors",
        "2 tensors",
        "32 bytes a token",
    ):
        assert expected in text


def test_plan_reads_like_calls(small_engine):
    assert "linear_0<ceildiv(T, 64) x 1 x 1>(tokens, @a, %h0, (T * 4), k[0])" in inspect.plan(Engine(small_engine))


def test_memory_draws_every_buffer(small_engine):
    text = inspect.memory(Engine(small_engine))
    assert "the arena is 1.067 of it" in text
    picture = text[text.index("+---") :]
    assert "a" in picture
    assert "b" in picture


def test_weights_show_their_recipe(small_engine):
    text = inspect.weights(Engine(small_engine))
    assert "panels<rows = 4, group = 2>" in text
    assert 'source<"w">' in text


@pytest.mark.parametrize("section", ["plan", "kernels", "memory", "weights"])
def test_json_is_a_piece_of_the_engine(small_engine, capsys, section):
    assert main(["inspect", str(small_engine), f"--{section}", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == [section]


def test_archives_show_the_same(tmp_path, small_source, small_engine):
    archive = write_small_engine(tmp_path / "small.llmc", small_source)
    assert inspect.plan(Engine(archive)) == inspect.plan(Engine(small_engine))
    assert Engine(archive).sha256() == Engine(small_engine).sha256()
    assert list(Engine(archive).verify()) == []


def test_verify_accepts_a_good_engine(small_engine, capsys):
    assert main(["inspect", str(small_engine), "--verify"]) == 0
    assert "every hash agrees" in capsys.readouterr().err


def damage_weights(engine):
    data = bytearray((engine / "weights.safetensors").read_bytes())
    data[-1] ^= 1
    (engine / "weights.safetensors").write_bytes(data)


DAMAGES = {
    "changed weight": (damage_weights, "tensor a: expected sha256"),
    "truncated plan": (
        lambda e: (e / "plan.json").write_bytes((e / "plan.json").read_bytes()[:-1]),
        "plan.json: expected",
    ),
    "missing part": (
        lambda e: (e / "kernels/host.so").unlink(),
        "kernels/host.so: expected 15 bytes, found no such part",
    ),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES.keys())
def test_verify_names_the_damage(small_engine, capsys, damage, message):
    damage(small_engine)
    assert main(["inspect", str(small_engine), "--kernels", "--verify"]) == 2
    assert message in capsys.readouterr().err


BROKEN = {
    "no engine": (lambda e: (e / "manifest.json").unlink(), "is no engine: it has no manifest.json"),
    "not JSON": (lambda e: (e / "manifest.json").write_text("{"), "manifest.json is damaged"),
    "newer format": (
        lambda e: (e / "manifest.json").write_text('{"format_version": 7}'),
        "expected engine format 1, found 7; install a newer llmc",
    ),
    "half a manifest": (
        lambda e: (e / "manifest.json").write_text('{"format_version": 1, "target": {}}'),
        "lacks limits, model, parts, weights",
    ),
}


@pytest.mark.parametrize(("damage", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_engines_are_one_message(small_engine, capsys, damage, message):
    damage(small_engine)
    assert main(["inspect", str(small_engine)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err


def test_no_such_engine(tmp_path):
    with pytest.raises(EngineError, match="no engine at"):
        Engine(tmp_path / "nothing")


def test_a_file_that_is_no_archive(tmp_path):
    (tmp_path / "x.llmc").write_text("not a zip")
    with pytest.raises(EngineError, match=r"is no \.llmc archive"):
        Engine(tmp_path / "x.llmc")


def test_a_stripped_engine_says_so(stripped_engine):
    assert "stripped: bind them with `llmc refit`" in inspect.summary(Engine(stripped_engine))
