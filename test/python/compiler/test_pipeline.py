import shlex
import subprocess

import pytest
from mlir import ir

from llmc.compiler.phases import Phase
from llmc.compiler.pipeline import refusal
from llmc.dialects import register
from llmc.errors import InternalError, ModelError
from llmc.native import native_path
from llmc.passes import IrDump, PassRunner, clone, split_pipeline

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
        runner.run(module, Phase.KERNELS.stage, ["canonicalize", "one-shot-bufferize", "cse"])
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
            PassRunner(reproducer_dir=tmp_path).run(module, Phase.KERNELS.stage, ["one-shot-bufferize"])
    assert len(list(tmp_path.iterdir())) == 1


def test_checks_of_the_model_are_errors_of_the_user(module, tmp_path):
    runner = PassRunner(reproducer_dir=tmp_path)
    with pytest.raises(ModelError, match="op was not bufferized"):
        runner.run(module, "kernels", ["cse", "one-shot-bufferize"], lambda name, text: ModelError(f"{name}: {text}"))
    assert not list(tmp_path.iterdir())
    assert isinstance(refusal("llm-raise-rope", "not a rotation"), ModelError)
    assert refusal("llm-plan-memory", "no place") is None


def test_a_module_that_is_not_valid_is_kept(module, tmp_path):
    op = module.body.operations[0].regions[0].blocks[0].operations[0].operation
    op.attributes["eps"] = ir.StringAttr.get("small", module.context)
    with pytest.raises(InternalError, match="the module of the test is not valid") as error:
        PassRunner(reproducer_dir=tmp_path).verify(module, "the module of the test")
    command = shlex.split(str(error.value).splitlines()[-1].partition("see it with: ")[2])
    replay = subprocess.run([native_path("bin/llmc-opt"), *command[1:]], capture_output=True, text=True, check=False)
    assert replay.returncode != 0
    assert "eps" in replay.stderr


def test_a_clone_is_a_module_of_its_own(module):
    text = str(module)
    copy = clone(module)
    assert str(copy) == text
    copy.body.operations[0].operation.erase()
    assert str(module) == text


def test_an_unknown_pass_is_named(module):
    with pytest.raises(InternalError, match="malformed pipeline no-such-pass"):
        PassRunner().run(module, Phase.KERNELS.stage, ["no-such-pass"])


def test_dump_holds_the_ir_after_each_pass_and_phase(module, tmp_path):
    PassRunner(IrDump(tmp_path)).run(module, Phase.KERNELS.stage, ["cse", "func.func(canonicalize)"])
    names = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.mlir"))
    assert names == ["2-kernels.mlir", "2-kernels/01-cse.mlir", "2-kernels/02-canonicalize.mlir"]
    for name in names:
        subprocess.run([native_path("bin/llmc-opt"), tmp_path / name], check=True, capture_output=True)
