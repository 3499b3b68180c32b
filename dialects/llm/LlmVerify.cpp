//===- LlmVerify.cpp - shared checks of the op verifiers ------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/llm/LlmVerify.h"

using namespace mlir;

namespace llmc::llm {

std::string sizeText(int64_t size) {
  return ShapedType::isDynamic(size) ? "?" : std::to_string(size);
}

LogicalResult checkRank(Operation *op, Value value, StringRef name,
                        int64_t rank) {
  RankedTensorType type = tensorType(value);
  if (type.getRank() == rank)
    return success();
  return op->emitOpError() << "expected " << name << " of rank " << rank
                           << ", got " << type;
}

LogicalResult checkSize(Operation *op, Value value, StringRef name, int64_t dim,
                        int64_t expected, StringRef of) {
  int64_t found = tensorType(value).getDimSize(dim);
  if (sizesAgree(found, expected))
    return success();
  return op->emitOpError() << "expected dimension " << dim << " of " << name
                           << " to be " << sizeText(expected) << " (" << of
                           << "), got " << sizeText(found);
}

LogicalResult checkSameShape(Operation *op, Value a, StringRef nameA, Value b,
                             StringRef nameB) {
  RankedTensorType typeA = tensorType(a), typeB = tensorType(b);
  bool agree = typeA.getRank() == typeB.getRank();
  for (int64_t dim = 0; agree && dim < typeA.getRank(); ++dim)
    agree = sizesAgree(typeA.getDimSize(dim), typeB.getDimSize(dim));
  if (agree)
    return success();
  return op->emitOpError() << "expected " << nameA << " and " << nameB
                           << " of one shape, got " << typeA << " and "
                           << typeB;
}

} // namespace llmc::llm
