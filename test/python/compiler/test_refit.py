"""Refit over a real checkpoint reader, with an engine whose recipes take each tensor as it is."""

import json
import shutil

import numpy as np
import pytest
import safetensors.numpy
from support import tiny_llama
from support.engine_files import write_small_engine

from llmc.compiler.cli import main
from llmc.compiler.dtypes import BY_NAME
from llmc.compiler.engine import Engine
from llmc.compiler.manifest import config_sha256
from llmc.compiler.refit import refit
from llmc.compiler.weights import Weight
from llmc.errors import EngineError, ModelError, OptionError
from llmc.frontends import open_checkpoint


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two checkpoints of one configuration, and one of another."""
    root = tmp_path_factory.mktemp("models")
    return {
        "first": tiny_llama.save_model(root / "first", seed=1),
        "second": tiny_llama.save_model(root / "second", seed=2),
        "other": tiny_llama.save_model(root / "other", intermediate_size=128),
        "config": tiny_llama.save_config(root / "config"),
    }


def make_engine(path, model, bound=False):
    checkpoint = open_checkpoint(model)
    weights = [
        Weight(name, BY_NAME["bf16"], tuple(checkpoint.shape(name)), recipe=f'#llm.source<"{name}">')
        for name in checkpoint.names()
    ]
    weights.append(Weight("freq", BY_NAME["f32"], (2,), value=np.array([1.0, 0.5], np.float32)))
    digest = config_sha256(checkpoint.config)
    return write_small_engine(path, checkpoint if bound else None, weights, config_sha256=digest)


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_refit_gives_the_bytes_of_a_compilation(tmp_path, models):
    compiled = make_engine(tmp_path / "compiled", models["first"], bound=True)
    stripped = make_engine(tmp_path / "stripped", models["first"])
    assert not Engine(stripped).is_bound
    assert main(["refit", str(stripped), str(models["first"]), "--quiet"]) == 0
    assert contents(stripped) == contents(compiled)
    assert list(Engine(stripped).verify()) == []


def test_a_configuration_alone_makes_the_same_identity(models):
    digests = {config_sha256(open_checkpoint(models[name]).config) for name in ("first", "second", "config")}
    assert len(digests) == 1


def test_bound_weights_are_replaced_with_force_only(tmp_path, models):
    engine = make_engine(tmp_path / "engine", models["first"], bound=True)
    before = contents(engine)
    with pytest.raises(OptionError, match="has its weights already: add --force"):
        refit(engine, models["second"])
    assert contents(engine) == before
    refit(engine, models["second"], force=True)
    assert contents(engine) == contents(make_engine(tmp_path / "expected", models["second"], bound=True))


def test_refit_into_a_new_engine_keeps_the_old_one(tmp_path, models):
    stripped = make_engine(tmp_path / "stripped", models["first"])
    before = contents(stripped)
    refit(stripped, models["first"], output=tmp_path / "new.llmc")
    assert contents(stripped) == before
    archive = Engine(tmp_path / "new.llmc")
    assert archive.is_bound
    assert list(archive.verify()) == []


def test_another_configuration_is_refused(tmp_path, models):
    stripped = make_engine(tmp_path / "stripped", models["first"])
    with pytest.raises(ModelError, match="another configuration than the engine was compiled for"):
        refit(stripped, models["other"])


def test_a_checkpoint_without_weights_is_refused(tmp_path, models):
    stripped = make_engine(tmp_path / "stripped", models["first"])
    with pytest.raises(ModelError, match="has no weights"):
        refit(stripped, models["config"])


def changed(model, folder, change):
    """A copy of a checkpoint with `change` made to its tensors."""
    shutil.copytree(model, folder)
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    change(tensors)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


BAD_CHECKPOINTS = {
    "missing": (lambda t: t.pop("model.norm.weight"), "model.norm.weight"),
    "left over": (lambda t: t.update(extra=np.zeros(3, np.float32)), "extra"),
    "shape": (lambda t: t.update({"model.norm.weight": np.zeros(65, np.float32)}), "[65]"),
}


@pytest.mark.parametrize(("change", "message"), BAD_CHECKPOINTS.values(), ids=BAD_CHECKPOINTS.keys())
def test_a_checkpoint_that_does_not_fit_changes_nothing(tmp_path, models, change, message):
    stripped = make_engine(tmp_path / "stripped", models["first"])
    before = contents(stripped)
    with pytest.raises(ModelError) as error:
        refit(stripped, changed(models["first"], tmp_path / "bad", change))
    assert message in str(error.value)
    assert contents(stripped) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad", "stripped"]


def test_a_damaged_engine_is_refused(tmp_path, models):
    stripped = make_engine(tmp_path / "stripped", models["first"])
    plan = stripped / "plan.json"
    plan.write_text(json.dumps({}))
    with pytest.raises(EngineError, match=r"is damaged: plan\.json"):
        refit(stripped, models["first"])
