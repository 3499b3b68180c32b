//===- AppendSampler.cpp - sampling as the end of the step ----------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/4_outline/Passes.h"

#include "dialects/llm/LlmDialect.h"
#include "passes/4_outline/StepFunction.h"

namespace llmc {
#define GEN_PASS_DEF_LLMAPPENDSAMPLER
#include "passes/4_outline/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

// The logits that @step returns, which must be all it returns.
static FailureOr<Value> findLogits(func::FuncOp step) {
  Operation *terminator = step.getBody().front().getTerminator();
  if (step.getNumArguments() != kNumModelArguments ||
      terminator->getNumOperands() != 1)
    return step.emitError()
           << "expected a step that takes " << kNumModelArguments
           << " arguments and returns the logits alone, got "
           << step.getNumArguments() << " arguments and "
           << terminator->getNumOperands() << " results";
  Value logits = terminator->getOperand(0);
  auto type = dyn_cast<RankedTensorType>(logits.getType());
  if (!type || type.getRank() != 2 || !type.getElementType().isF32())
    return step.emitError()
           << "expected float32 logits of rank 2, got " << logits.getType();
  return logits;
}

namespace {
struct AppendSamplerPass : llmc::impl::LlmAppendSamplerBase<AppendSamplerPass> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> step = findPagedStep(getOperation());
    if (failed(step))
      return signalPassFailure();
    FailureOr<Value> logits = findLogits(*step);
    if (failed(logits))
      return signalPassFailure();

    // Temperature, top_k, ..., as the op takes them too.
    SmallVector<Value> operands = {*logits};
    for (const StepInput &input : samplingInputs()) {
      unsigned index = step->getNumArguments();
      if (failed(step->insertArgument(index, inputType(&getContext(), input),
                                      /*argAttrs=*/{}, step->getLoc())))
        return signalPassFailure();
      operands.push_back(step->getArgument(index));
    }

    Operation *terminator = step->getBody().front().getTerminator();
    OpBuilder builder(terminator);
    auto type = RankedTensorType::get(
        cast<RankedTensorType>(logits->getType()).getDimSize(0),
        builder.getI32Type());
    Value next =
        llm::SampleOp::create(builder, terminator->getLoc(), type, operands);
    terminator->insertOperands(1, next);
    step->setFunctionType(builder.getFunctionType(
        step->getArgumentTypes(), terminator->getOperandTypes()));
  }
};
} // namespace
