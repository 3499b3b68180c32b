//===- MergedParameter.h - one parameter out of several ---------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_3_OPTIMIZE_MERGEDPARAMETER_H
#define LLMC_PASSES_3_OPTIMIZE_MERGEDPARAMETER_H

#include "dialects/llm/LlmDialect.h"
#include "mlir/IR/Builders.h"

#include <functional>

namespace llmc {

// How the rows of several weights (or the two halves of one) become those of
// one.
class MergeRecipe {
public:
  static MergeRecipe concat();
  static MergeRecipe interleave(int64_t block);
  // Of one weight of 2 * `half` rows; the gate is its first half or its second.
  static MergeRecipe interleaveHalves(int64_t block, int64_t half,
                                      bool gateFirst);

  mlir::Attribute operator()(llvm::ArrayRef<mlir::Attribute> parts) const {
    return build(parts);
  }

private:
  using Build = std::function<mlir::Attribute(llvm::ArrayRef<mlir::Attribute>)>;
  explicit MergeRecipe(Build build) : build(std::move(build)) {}
  Build build;
};

// Whether a value reads a parameter that is made from the checkpoint and has no
// storage layout yet.
bool isMergeableWeight(mlir::Value weight);

// Declares the merged parameter and reads it. Its name joins what differs in
// the names of the parts: q_proj, k_proj and v_proj become qkv_proj.
mlir::Value mergeWeights(llvm::ArrayRef<mlir::Value> weights,
                         const MergeRecipe &recipe, mlir::SymbolTable &symbols,
                         mlir::OpBuilder &builder);

// The name of a merged parameter, before it is made unique.
std::string mergedName(llvm::ArrayRef<llvm::StringRef> names);

} // namespace llmc

#endif // LLMC_PASSES_3_OPTIMIZE_MERGEDPARAMETER_H
