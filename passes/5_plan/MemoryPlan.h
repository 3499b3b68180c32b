//===- MemoryPlan.h - how a memory plan is written in the IR ----*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Attributes of a planned @step and the sizes behind them: what the planner,
// its checker and the export agree on. Decisions about placement are not
// shared.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_5_PLAN_MEMORYPLAN_H
#define LLMC_PASSES_5_PLAN_MEMORYPLAN_H

#include "dialects/llm/LlmDialect.h"
#include "passes/4_outline/StepSizes.h"

namespace llmc {

// Attributes of @step, all i64.
namespace plan_attr {
inline constexpr llvm::StringLiteral arenaBytes = "llm.arena_bytes";
// Most bytes that are live at one launch, each buffer rounded up to the
// alignment.
inline constexpr llvm::StringLiteral arenaPeak = "llm.arena_peak";
// The same without rounding: no arena can be smaller.
inline constexpr llvm::StringLiteral arenaLowerBound = "llm.arena_lower_bound";
inline constexpr llvm::StringLiteral arenaAlignment = "llm.arena_alignment";
inline constexpr llvm::StringLiteral maxNumTokens = "llm.max_num_tokens";
inline constexpr llvm::StringLiteral maxBatchSize = "llm.max_batch_size";
} // namespace plan_attr

// The sizes that an arena is planned for.
struct StepLimits {
  int64_t maxNumTokens = 0;
  // Sequences, and so logit rows, of a step.
  int64_t maxBatchSize = 0;
};

// Bytes of a launch result when T and R are at their limits. Emits an error at
// the launch when the size does not follow from @step's arguments.
mlir::FailureOr<int64_t>
bytesAtLimits(mlir::OpResult value, const StepSizes &sizes, StepLimits limits);

// A value of a plan attribute; emits an error when it is missing.
mlir::FailureOr<int64_t> readPlanAttr(mlir::Operation *step,
                                      llvm::StringRef name);

// The limits that @step was planned for.
mlir::FailureOr<StepLimits> readLimits(mlir::Operation *step);

// The kernel of a launch whose symbol uses have been verified.
llm::KernelOp kernelOf(llm::LaunchOp launch);

// The operand whose buffer result `index` shares, or none.
std::optional<unsigned> tiedOperand(llm::LaunchOp launch, unsigned index);

} // namespace llmc

#endif // LLMC_PASSES_5_PLAN_MEMORYPLAN_H
