//===- StepSizes.h - dynamic sizes in terms of T and R ----------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// An analysis: every dynamic dimension of a step is a multiple of the number of
// tokens or of logit rows. It is found by propagation from @step's arguments,
// through groups and, per launch, through kernels.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_4_OUTLINE_STEPSIZES_H
#define LLMC_PASSES_4_OUTLINE_STEPSIZES_H

#include "dialects/llm/LlmDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace llmc {

// `factor` times the runtime size `symbol` ('T' or 'R'), or the number `factor`
// when `symbol` is 0.
struct StepSize {
  char symbol = 0;
  int64_t factor = 0;

  friend bool operator==(StepSize a, StepSize b) {
    return a.symbol == b.symbol && a.factor == b.factor;
  }
  friend bool operator!=(StepSize a, StepSize b) { return !(a == b); }
};

class StepSizes {
public:
  // `step` has the signature that findPagedStep checks.
  explicit StepSizes(mlir::func::FuncOp step);

  // Size of a dimension; none where it does not follow from the arguments.
  std::optional<StepSize> dim(mlir::Value tensor, int64_t index) const;

  // All dimensions of a tensor; none unless all are known.
  std::optional<llvm::SmallVector<StepSize>> shape(mlir::Value tensor) const;

private:
  using Shape = llvm::SmallVector<std::optional<StepSize>>;

  void visitBlock(mlir::Block &block);
  void visit(mlir::Operation *op);
  void visitLaunch(llm::LaunchOp launch);
  void setFromOperands(mlir::Operation *op);
  void copy(mlir::ValueRange from, mlir::ValueRange to);
  std::optional<StepSize> index(mlir::OpFoldResult value) const;
  Shape shapeOrUnknown(mlir::Value tensor) const;

  // Dynamic dimensions of tensors; static ones are read from the type.
  llvm::DenseMap<mlir::Value, Shape> tensors;
  // Values of type index.
  llvm::DenseMap<mlir::Value, StepSize> indexes;
};

} // namespace llmc

#endif // LLMC_PASSES_4_OUTLINE_STEPSIZES_H
