"""llmc's dialects and passes inside the ordinary `mlir` package."""

import pytest
from mlir import ir
from mlir.passmanager import PassManager

import llmc.dialects
from llmc.dialects import llm

MODULE = """
llm.parameter @w : tensor<8x4xbf16> from #llm.source<"w">
func.func @step() -> tensor<8x4xbf16> {
  %used = llm.weight @w : tensor<8x4xbf16>
  %dead = llm.weight @w : tensor<8x4xbf16>
  return %used : tensor<8x4xbf16>
}
"""


@pytest.fixture
def context() -> ir.Context:
    return llmc.dialects.register(ir.Context())


def test_ops_parse_into_python_classes(context: ir.Context) -> None:
    with context:
        module = ir.Module.parse(MODULE)  # ops do not keep it alive
        step = module.body.operations[1]
        assert isinstance(step.regions[0].blocks[0].operations[0], llm.WeightOp)


def test_ops_are_built_from_python(context: ir.Context) -> None:
    with context, ir.Location.unknown():
        module = ir.Module.parse(MODULE)
        step = module.body.operations[1].regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(step):
            llm.WeightOp(ir.RankedTensorType.get([8, 4], ir.BF16Type.get()), "w")
        assert module.operation.verify()
        assert str(module).count("llm.weight @w : tensor<8x4xbf16>") == 3


def test_upstream_passes_know_the_ops(context: ir.Context) -> None:
    with context:
        module = ir.Module.parse(MODULE)
        PassManager.parse("builtin.module(canonicalize)").run(module.operation)
        assert str(module).count("llm.weight") == 1


def test_unregistered_context_refuses_the_ops() -> None:
    with ir.Context(), pytest.raises(ir.MLIRError, match="llm"):
        ir.Module.parse(MODULE)
