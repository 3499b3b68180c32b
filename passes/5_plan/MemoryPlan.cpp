//===- MemoryPlan.cpp - how a memory plan is written in the IR ------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/5_plan/MemoryPlan.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace llmc {

FailureOr<int64_t> bytesAtLimits(OpResult value, const StepSizes &sizes,
                                 StepLimits limits) {
  Operation *launch = value.getOwner();
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.getElementType().isIntOrFloat())
    return launch->emitError()
           << "result #" << value.getResultNumber()
           << " is no tensor of numbers, got " << value.getType();
  int64_t elements = 1;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    std::optional<StepSize> size = sizes.dim(value, i);
    if (!size)
      return launch->emitError()
             << "cannot derive dimension " << i << " of result #"
             << value.getResultNumber() << ", a " << type
             << ", from the arguments of @step";
    int64_t extent = size->factor;
    if (size->symbol)
      extent *= size->symbol == 'T' ? limits.maxNumTokens : limits.maxBatchSize;
    elements *= extent;
  }
  return llvm::divideCeil(elements * type.getElementTypeBitWidth(), 8);
}

FailureOr<int64_t> readPlanAttr(Operation *step, StringRef name) {
  if (auto attr = step->getAttrOfType<IntegerAttr>(name))
    return attr.getInt();
  return step->emitError() << "expected the attribute " << name
                           << " on @step; run llm-plan-memory first";
}

FailureOr<StepLimits> readLimits(Operation *step) {
  FailureOr<int64_t> tokens = readPlanAttr(step, plan_attr::maxNumTokens);
  FailureOr<int64_t> batch = readPlanAttr(step, plan_attr::maxBatchSize);
  if (failed(tokens) || failed(batch))
    return failure();
  return StepLimits{*tokens, *batch};
}

llm::KernelOp kernelOf(llm::LaunchOp launch) {
  return SymbolTable::lookupNearestSymbolFrom<llm::KernelOp>(
      launch, launch.getKernelAttr());
}

std::optional<unsigned> tiedOperand(llm::LaunchOp launch, unsigned index) {
  ArrayRef<int64_t> tied = launch.getTied().value_or(ArrayRef<int64_t>());
  for (size_t i = 0; i + 1 < tied.size(); i += 2)
    if (tied[i] == index)
      return tied[i + 1];
  return std::nullopt;
}

} // namespace llmc
