//===- StepFunction.h - the entry function @step ----------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The signature of the paged @step, fixed by docs/architecture.md: which
// argument is which input of the runtime, and which runtime size counts its
// rows.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_4_OUTLINE_STEPFUNCTION_H
#define LLMC_PASSES_4_OUTLINE_STEPFUNCTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace llmc {

// An array that the runtime fills for each step.
struct StepInput {
  llvm::StringRef name;
  // As the engine format writes it.
  llvm::StringRef dtype;
  // 'T' tokens or 'R' logit rows.
  char rows;
};

// The handles !llm.batch and !llm.kv_cache follow the first inputs.
inline constexpr unsigned kNumModelInputs = 3;
inline constexpr unsigned kBatchArgument = 3;
inline constexpr unsigned kCacheArgument = 4;
inline constexpr unsigned kNumModelArguments = 5;

// tokens, positions, logit_rows.
llvm::ArrayRef<StepInput> modelInputs();

// temperature, top_k, top_p, min_p, seed, sample_index: the arguments behind
// the handles of a step that samples on the device.
llvm::ArrayRef<StepInput> samplingInputs();

// The input that argument `index` is; null for the two handles.
const StepInput *stepInput(unsigned index);

// The tensor type of an input.
mlir::RankedTensorType inputType(mlir::MLIRContext *context,
                                 const StepInput &input);

// The paged @step of a module. Emits an error when it is missing, has another
// signature or more than one block.
mlir::FailureOr<mlir::func::FuncOp> findPagedStep(mlir::ModuleOp module);

} // namespace llmc

#endif // LLMC_PASSES_4_OUTLINE_STEPFUNCTION_H
