//===- VerifyContract.cpp - what a frontend may hand over -----------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/1_raise/Passes.h"

#include "dialects/llm/LlmDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/Describe.h"

namespace llmc {
#define GEN_PASS_DEF_LLMVERIFYCONTRACT
#include "passes/1_raise/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

// Every op that may cross is named here, so that an op added to a dialect is
// refused until someone decides. Passes.td documents the list.
bool isAllowedOp(Operation *op) {
  return isa<ModuleOp, func::FuncOp, func::ReturnOp>(op) ||
         isa<llm::ParameterOp, llm::WeightOp, llm::EmbeddingOp, llm::LinearOp,
             llm::MatmulOp, llm::BroadcastOp, llm::TransposeOp, llm::ReduceOp,
             llm::ActivationOp, llm::GluOp, llm::RmsNormOp, llm::LayerNormOp,
             llm::RopeTableOp, llm::RopeOp, llm::AttentionOp, llm::MoeRouteOp,
             llm::MoeMlpOp>(op) ||
         isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
         isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ConcatOp,
             tensor::DimOp, tensor::ExpandShapeOp, tensor::ExtractSliceOp>(op);
}

bool isAllowedType(Type type) {
  if (type.isIndex())
    return true;
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getEncoding())
    return false;
  Type element = tensor.getElementType();
  return element.isF32() || element.isInteger(32) || element.isInteger(1) ||
         element.isIndex();
}

struct VerifyContractPass
    : llmc::impl::LlmVerifyContractBase<VerifyContractPass> {
  void runOnOperation() override {
    bool valid = succeeded(verifySignature());
    getOperation().walk([&](Operation *op) { valid &= verifyOp(op); });
    if (!valid)
      signalPassFailure();
  }

  LogicalResult verifySignature() {
    auto step = getOperation().lookupSymbol<func::FuncOp>("step");
    if (!step)
      return getOperation().emitError()
             << "expected a function @step, the entry of every model, found "
                "none; the frontend must name its function so";
    FunctionType type = step.getFunctionType();
    Type ids = RankedTensorType::get({ShapedType::kDynamic},
                                     IntegerType::get(&getContext(), 32));
    auto logits = type.getNumResults() == 1
                      ? dyn_cast<RankedTensorType>(type.getResult(0))
                      : nullptr;
    if (type.getInputs() != ArrayRef<Type>{ids, ids} || !logits ||
        logits.getRank() != 2 || !logits.isDynamicDim(0) ||
        logits.isDynamicDim(1) || !logits.getElementType().isF32())
      return step.emitError()
             << "expected @step to be (tensor<?xi32>, tensor<?xi32>) -> "
                "tensor<?xVxf32>, from token ids and positions to logits, "
                "found "
             << type
             << "; the frontend must fold the batch dimension away and return "
                "logits only";
    if (!step.getBody().hasOneBlock())
      return step.emitError() << "expected @step to be one block, found "
                              << step.getBody().getBlocks().size()
                              << "; control flow that depends on data cannot "
                                 "be compiled, export "
                                 "the model without it";
    return success();
  }

  bool verifyOp(Operation *op) {
    if (!isAllowedOp(op)) {
      op->emitError() << "expected only ops of a dense llm graph, found '"
                      << op->getName() << "' in " << describe(op->getLoc())
                      << "; convert it in the frontend (frontends/convert/ops)";
      return false;
    }
    for (Value result : op->getResults()) {
      if (isAllowedType(result.getType()))
        continue;
      op->emitError()
          << "expected tensors of f32, i32 or i1 without encoding, found "
          << result.getType() << " in " << describe(op->getLoc())
          << "; the frontend imports in float32 and llm-assign-precision alone "
             "narrows types";
      return false;
    }
    return true;
  }
};

} // namespace
