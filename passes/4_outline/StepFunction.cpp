//===- StepFunction.cpp - the entry function @step ------------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/4_outline/StepFunction.h"

#include "dialects/llm/LlmDialect.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace llmc {

static constexpr StepInput kModelInputs[] = {{"tokens", "i32", 'T'},
                                             {"positions", "i32", 'T'},
                                             {"logit_rows", "i32", 'R'}};

static constexpr StepInput kSamplingInputs[] = {
    {"temperature", "f32", 'R'}, {"top_k", "i32", 'R'},
    {"top_p", "f32", 'R'},       {"min_p", "f32", 'R'},
    {"seed", "u64", 'R'},        {"sample_index", "i32", 'R'}};

ArrayRef<StepInput> modelInputs() { return kModelInputs; }
ArrayRef<StepInput> samplingInputs() { return kSamplingInputs; }

const StepInput *stepInput(unsigned index) {
  if (index < kNumModelInputs)
    return &kModelInputs[index];
  if (index < kNumModelArguments)
    return nullptr;
  return &kSamplingInputs[index - kNumModelArguments];
}

RankedTensorType inputType(MLIRContext *context, const StepInput &input) {
  Type element = llvm::StringSwitch<Type>(input.dtype)
                     .Case("f32", Float32Type::get(context))
                     .Case("i32", IntegerType::get(context, 32))
                     .Case("u64", IntegerType::get(context, 64));
  return RankedTensorType::get({ShapedType::kDynamic}, element);
}

static LogicalResult verifyArgument(func::FuncOp step, unsigned index) {
  Type type = step.getArgumentTypes()[index];
  if (const StepInput *input = stepInput(index)) {
    Type expected = inputType(step.getContext(), *input);
    if (type == expected)
      return success();
    return step.emitError()
           << "expected argument #" << index << " of @step (" << input->name
           << ") to be " << expected << ", got " << type;
  }
  bool isHandle = index == kBatchArgument ? isa<llm::BatchType>(type)
                                          : isa<llm::KvCacheType>(type);
  if (isHandle)
    return success();
  return step.emitError() << "expected argument #" << index
                          << " of @step to be "
                          << (index == kBatchArgument ? "!llm.batch"
                                                      : "!llm.kv_cache")
                          << ", got " << type;
}

FailureOr<func::FuncOp> findPagedStep(ModuleOp module) {
  auto step = module.lookupSymbol<func::FuncOp>("step");
  if (!step)
    return module.emitError("expected a function @step");
  if (!step.getBody().hasOneBlock())
    return step.emitError("expected @step to have one block");
  unsigned count = step.getNumArguments();
  unsigned sampling = kNumModelArguments + samplingInputs().size();
  if (count != kNumModelArguments && count != sampling)
    return step.emitError() << "expected the paged form of @step, which takes "
                            << kNumModelArguments << " arguments, or "
                            << sampling << " when it samples; got " << count;
  for (unsigned index = 0; index < count; ++index)
    if (failed(verifyArgument(step, index)))
      return failure();
  return step;
}

} // namespace llmc
