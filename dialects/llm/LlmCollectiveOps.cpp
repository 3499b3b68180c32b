//===- LlmCollectiveOps.cpp - tensor parallelism --------------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmVerify.h"

using namespace mlir;
using namespace llmc::llm;

static LogicalResult checkRanks(Operation *op, int64_t ranks) {
  if (ranks >= 1)
    return success();
  return op->emitOpError() << "expected 1 or more ranks, got " << ranks;
}

// `wide` and `narrow` are the joined and the sharded side of a collective.
static LogicalResult checkShards(Operation *op, Value wide, StringRef wideName,
                                 Value narrow, StringRef narrowName,
                                 int64_t dim, int64_t ranks) {
  int64_t rank = tensorType(narrow).getRank();
  if (failed(checkRanks(op, ranks)) ||
      failed(checkRank(op, wide, wideName, rank)))
    return failure();
  if (dim < 0 || dim >= rank)
    return op->emitOpError()
           << "expected dim in [0, " << rank << "), got " << dim;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t size = tensorType(narrow).getDimSize(i);
    if (i == dim && !ShapedType::isDynamic(size))
      size *= ranks;
    if (failed(checkSize(op, wide, wideName, i, size,
                         (narrowName + " of all ranks").str())))
      return failure();
  }
  return success();
}

LogicalResult AllReduceOp::verify() {
  if (failed(checkRanks(*this, getRanks())))
    return failure();
  return checkSameShape(*this, getInput(), "the input", getResult(),
                        "the result");
}

LogicalResult AllGatherOp::verify() {
  return checkShards(*this, getResult(), "the result", getInput(), "input",
                     getDim(), getRanks());
}

LogicalResult ReduceScatterOp::verify() {
  return checkShards(*this, getInput(), "the input", getResult(), "result",
                     getDim(), getRanks());
}
