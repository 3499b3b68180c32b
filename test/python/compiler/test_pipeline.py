import shlex
import subprocess

import pytest
from mlir import ir

from llmc.compiler.errors import InternalError, ModelError
from llmc.compiler.phases import Phase
from llmc.compiler.pipeline import IrDump, PassRunner, split_pipeline
from llmc.dialects import register
from llmc.native import native_path

# Bufferization does not know llm.rms_norm: a pass that fails for certain.
NOT_BUFFERIZABLE = """
func.func @step(%x: tensor<2x4xf32>, %g: tensor<4xf32>) -> tensor<2x4xf32> {
  %y = llm.rms_norm %x, %g {eps = 1.0e-5 : f64} : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
"""


@pytest.fixture
def module():
    with register(ir.Context()):
        return ir.Module.parse(NOT_BUFFERIZABLE)


def test_split_respects_nesting():
    assert split_pipeline("a,b{x=1,2 y={z,w}},func.func(c,d),e") == ["a", "b{x=1,2 y={z,w}}", "func.func(c,d)", "e"]


def test_a_failing_pass_leaves_a_reproducer_that_replays(module, tmp_path):
    runner = PassRunner(reproducer_dir=tmp_path)
    with pytest.raises(InternalError) as error:
        runner.run(module, Phase.KERNELS, ["canonicalize", "one-shot-bufferize", "cse"])
    message = str(error.value)
    assert message.startswith("pass one-shot-bufferize failed: op was not bufferized")
    assert error.value.exit_code == 1
    command = shlex.split(message.splitlines()[-1].partition("replay it with: ")[2])
    assert command == ["llmc-opt", "--run-reproducer", str(error.value.reproducer)]
    replay = subprocess.run([native_path("bin/llmc-opt"), *command[1:]], capture_output=True, text=True, check=False)
    assert replay.returncode != 0
    assert "op was not bufferized" in replay.stderr


def test_equal_failures_share_one_reproducer(module, tmp_path):
    for _ in range(2):
        with pytest.raises(InternalError):
            PassRunner(reproducer_dir=tmp_path).run(module, Phase.KERNELS, ["one-shot-bufferize"])
    assert len(list(tmp_path.iterdir())) == 1


def test_checks_of_the_model_are_errors_of_the_user(module, tmp_path, monkeypatch):
    monkeypatch.setattr("llmc.compiler.pipeline._CHECKS_OF_THE_MODEL", ("one-shot-bufferize",))
    with pytest.raises(ModelError, match="op was not bufferized"):
        PassRunner(reproducer_dir=tmp_path).run(module, Phase.KERNELS, ["one-shot-bufferize"])
    assert not list(tmp_path.iterdir())


def test_an_unknown_pass_is_named(module):
    with pytest.raises(InternalError, match="malformed pipeline no-such-pass"):
        PassRunner().run(module, Phase.KERNELS, ["no-such-pass"])


def test_dump_holds_the_ir_after_each_pass_and_phase(module, tmp_path):
    PassRunner(IrDump(tmp_path)).run(module, Phase.KERNELS, ["cse", "func.func(canonicalize)"])
    names = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.mlir"))
    assert names == ["2-kernels.mlir", "2-kernels/01-cse.mlir", "2-kernels/02-canonicalize.mlir"]
    for name in names:
        subprocess.run([native_path("bin/llmc-opt"), tmp_path / name], check=True, capture_output=True)
