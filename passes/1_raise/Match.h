//===- Match.h - matchers shared by the raise passes ------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Imported graphs write every scalar and every vector as an explicit broadcast.
// The matchers here look through that, and through float casts, so that
// patterns read like the formula they look for.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_1_RAISE_MATCH_H
#define LLMC_PASSES_1_RAISE_MATCH_H

#include "dialects/llm/LlmDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"

namespace llmc {

// The value before broadcasts and casts between float types.
mlir::Value skipBroadcasts(mlir::Value value);

// The double with the shortest decimal form that rounds to `number`: the 1e-05
// that the model's author wrote, not 9.99999974e-06.
double decimalValue(const llvm::APFloat &number);

// The number, if all elements of a float tensor are the same constant.
std::optional<double> splatValue(mlir::Value value);

// Whether all elements are `number`, up to the rounding of constants to
// float32.
bool isSplat(mlir::Value value, double number);

// Whether the value is a vector along the last dimension, repeated over the
// others; returns the vector.
mlir::Value lastDimVector(mlir::Value value);

// x of x * x or x ** 2.
mlir::Value squared(mlir::Value value);

// Factors of a product, in order: mulf, and division by a constant, are opened;
// all constants are multiplied into `scale`. Broadcasts and casts are looked
// through at constants only.
struct Product {
  double scale = 1.0;
  llvm::SmallVector<mlir::Value, 4> factors;
};
Product flattenProduct(mlir::Value value);

// Calls `match(lhs, rhs)` with the operands in both orders until it succeeds.
template <typename BinaryOp, typename Fn>
bool matchEitherOrder(BinaryOp op, Fn match) {
  return op &&
         (match(op.getLhs(), op.getRhs()) || match(op.getRhs(), op.getLhs()));
}

// The defining op looking through broadcasts and casts, if it is an `OpT`.
template <typename OpT> OpT definedBy(mlir::Value value) {
  return skipBroadcasts(value).getDefiningOp<OpT>();
}

} // namespace llmc

#endif // LLMC_PASSES_1_RAISE_MATCH_H
