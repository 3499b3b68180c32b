"""The driver as a whole, on a random Llama.

Code generation is replaced by one that returns a stand-in for each kernel: what is tested here is
the driver. The engines that run are tested in test_end_to_end.py.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest
from support import tiny_llama
from support.stand_in_generator import StandInGenerator

from llmc.compiler import kernels
from llmc.compiler.cli import main
from llmc.compiler.driver import Compilation
from llmc.compiler.engine import Engine
from llmc.compiler.phases import Phase
from llmc.native import native_path


@pytest.fixture(autouse=True)
def stand_in(monkeypatch, tmp_path):
    monkeypatch.setattr(kernels, "_generator", lambda resolved: StandInGenerator)
    monkeypatch.setenv("LLMC_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_llama.save_model(tmp_path_factory.mktemp("models") / "tiny")


def compile_to(path, model, *options):
    code = main(["compile", str(model), "-o", str(path), "--quiet", "--target", "x86-64-v3", *options])
    assert code == 0
    return path


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_engine_is_whole(tmp_path, model):
    engine = Engine(compile_to(tmp_path / "engine", model))
    assert list(engine.verify()) == []
    manifest, plan = engine.manifest, engine.plan
    assert manifest["target"] == {"name": "host", "arch": "x86-64", "features": manifest["target"]["features"]}
    assert manifest["model"]["architecture"] == "LlamaForCausalLM"
    assert manifest["model"]["eos_token_ids"] == [257]
    assert manifest["limits"]["max_seq_len"] == 256
    assert manifest["precision"] == {"weights": "bf16", "activations": "f32", "kv_cache": "f32"}
    assert {part["path"] for part in manifest["parts"]} >= {
        "plan.json", "recipes.json", "weights.safetensors", "kernels/host.so", "tokenizer/tokenizer.json",
    }  # fmt: skip
    assert [row["heads"] for row in plan["kv_cache"]["layers"]] == [2, 2]
    [entry] = plan["ranges"]
    assert (entry["min_tokens"], entry["max_tokens"]) == (1, 2048)
    assert len(entry["launches"]) > len(plan["kernels"])  # equal layers share kernels


def test_every_checkpoint_tensor_is_in_a_recipe(tmp_path, model):
    engine = Engine(compile_to(tmp_path / "engine", model))
    sources = {name for weight in engine.weights if weight.recipe for name in weight.parsed_recipe().sources()}
    assert len(sources) == 2 * 9 + 3


def test_bytes_do_not_depend_on_place_time_or_cache(tmp_path, model):
    """A copy of the model, another folder, another process, another hash seed, no cache."""
    first = compile_to(tmp_path / "one" / "engine", model)
    compile_to(tmp_path / "one" / "cached", model)
    copy = shutil.copytree(model, tmp_path / "two" / "same model")
    second = compile_to(tmp_path / "two" / "other name", copy, "--no_cache", "--threads", "1")
    assert contents(first) == contents(second) == contents(tmp_path / "one" / "cached")
    code = (
        "import sys; from llmc.compiler import kernels; from llmc.compiler.cli import main\n"
        "from support.stand_in_generator import StandInGenerator\n"
        "kernels._generator = lambda resolved: StandInGenerator\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, "compile", str(model), "--quiet", "--target", "x86-64-v3"]
    subprocess.run([*command, "-o", tmp_path / "three", "--no_cache"], env=environment, check=True)
    assert contents(first) == contents(tmp_path / "three")


def test_a_stripped_engine_needs_the_config_only_and_refits_to_the_same_bytes(tmp_path, model):
    config = tiny_llama.save_config(tmp_path / "config")
    stripped = compile_to(tmp_path / "stripped", config, "--strip_weights")
    assert not Engine(stripped).is_bound
    assert not (stripped / "weights.safetensors").exists()
    assert main(["refit", str(stripped), str(model), "--quiet"]) == 0
    assert contents(stripped) == contents(compile_to(tmp_path / "engine", model))


def test_a_config_without_weights_is_refused(tmp_path, capsys):
    config = tiny_llama.save_config(tmp_path / "config")
    assert main(["compile", str(config), "-o", str(tmp_path / "engine"), "--quiet"]) == 2
    assert "has no weights: expected *.safetensors" in capsys.readouterr().err
    assert not (tmp_path / "engine").exists()


def test_an_archive_holds_the_same_parts(tmp_path, model):
    folder = Engine(compile_to(tmp_path / "engine", model))
    archive = Engine(compile_to(tmp_path / "engine.llmc", model))
    assert archive.is_archive
    assert archive.sha256() == folder.sha256()


def test_an_existing_output_needs_force(tmp_path, model, capsys):
    engine = compile_to(tmp_path / "engine", model)
    assert main(["compile", str(model), "-o", str(engine), "--quiet"]) == 2
    assert "add --force" in capsys.readouterr().err
    compile_to(engine, model, "--force", "--max_batch_size", "4")
    assert Engine(engine).manifest["limits"]["max_batch_size"] == 4


def test_a_full_disk_leaves_nothing(tmp_path, model, capsys, monkeypatch):
    class Full:
        free = 1000

    monkeypatch.setattr("shutil.disk_usage", lambda path: Full)
    assert main(["compile", str(model), "-o", str(tmp_path / "out" / "engine"), "--quiet"]) == 2
    assert "no space for" in capsys.readouterr().err
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max_seq_len", "512"], "was made for at most 256 tokens"),
        (["--emit", "tile"], "has no such level"),
    ],
)
def test_what_the_model_or_target_cannot_do(tmp_path, model, capsys, options, message):
    assert main(["compile", str(model), "-o", str(tmp_path / "engine"), "--quiet", *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "engine").exists()


@pytest.mark.parametrize("level", ["torch", "llm", "kernels", "plan", "llvm"])
def test_emit_every_level(tmp_path, model, level):
    path = compile_to(tmp_path / "out.mlir", model, "--emit", level)
    if level != "torch":  # torch-mlir's dialect is not ours to parse
        subprocess.run([native_path("bin/llmc-opt"), path], check=True, capture_output=True)
    assert path.read_text().strip()


def test_levels_do_not_depend_on_the_order_of_asking(model):
    order = [Phase.TORCH, Phase.LLM, Phase.KERNELS, Phase.PLAN]
    forward, backward = Compilation(model), Compilation(model)
    texts = {phase: forward.emit(phase) for phase in order}
    assert all(texts.values())
    assert texts == {phase: backward.emit(phase) for phase in reversed(order)}
    assert texts == {phase: forward.emit(phase) for phase in reversed(order)}


def test_dump_ir_has_every_phase_and_pass(tmp_path, model):
    compile_to(tmp_path / "engine", model, "--dump_ir", str(tmp_path / "ir"))
    names = {path.relative_to(tmp_path / "ir").as_posix() for path in (tmp_path / "ir").rglob("*.mlir")}
    assert {f"{phase.stage}.mlir" for phase in (Phase.TORCH, Phase.LLM, Phase.KERNELS, Phase.PLAN)} <= names
    assert any(name.endswith("llm-outline-kernels.mlir") for name in names)


def test_manifest_and_plan_are_canonical_json(tmp_path, model):
    engine = compile_to(tmp_path / "engine", model)
    for name in ("manifest.json", "plan.json", "recipes.json"):
        text = (engine / name).read_text()
        assert text == json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False, indent=1) + "\n"
        assert str(tmp_path) not in text
