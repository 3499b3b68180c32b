//===- LlmVerify.h - shared checks of the op verifiers ----------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each check emits one error that names what was expected and what was found.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_DIALECTS_LLM_LLMVERIFY_H
#define LLMC_DIALECTS_LLM_LLMVERIFY_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace llmc::llm {

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

// Two sizes agree when equal or when one of them is known only at run time.
inline bool sizesAgree(int64_t a, int64_t b) {
  return a == b || mlir::ShapedType::isDynamic(a) ||
         mlir::ShapedType::isDynamic(b);
}

std::string sizeText(int64_t size);

// One of the weight recipes of LlmAttrs.td.
bool isRecipe(mlir::Attribute attr);

mlir::LogicalResult checkRank(mlir::Operation *op, mlir::Value value,
                              llvm::StringRef name, int64_t rank);
mlir::LogicalResult checkSize(mlir::Operation *op, mlir::Value value,
                              llvm::StringRef name, int64_t dim,
                              int64_t expected, llvm::StringRef of);
mlir::LogicalResult checkSameShape(mlir::Operation *op, mlir::Value a,
                                   llvm::StringRef nameA, mlir::Value b,
                                   llvm::StringRef nameB);

} // namespace llmc::llm

#endif // LLMC_DIALECTS_LLM_LLMVERIFY_H
