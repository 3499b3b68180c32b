//===- LlmQuantOps.cpp - scaled and packed weights ------------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmVerify.h"

using namespace mlir;
using namespace llmc::llm;

// A scale covers [rows, columns] when it is a scalar or each of its dimensions
// divides the covered one.
static LogicalResult checkScale(Operation *op, Value scale, StringRef name,
                                RankedTensorType covered) {
  if (!scale)
    return success();
  RankedTensorType type = tensorType(scale);
  if (type.getRank() == 0)
    return success();
  if (type.getRank() != covered.getRank())
    return op->emitOpError()
           << "expected " << name << " to be a scalar or of rank "
           << covered.getRank() << ", got " << type;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    int64_t size = type.getDimSize(dim), whole = covered.getDimSize(dim);
    if (sizesAgree(size, whole) || size == 1)
      continue;
    if (size <= 0 || whole % size)
      return op->emitOpError() << "expected dimension " << dim << " of " << name
                               << " to divide " << whole << ", got " << size;
  }
  return success();
}

LogicalResult QuantizeOp::verify() {
  if (failed(checkSameShape(*this, getInput(), "the input", getResult(),
                            "the result")))
    return failure();
  return checkScale(*this, getScale(), "scale", tensorType(getInput()));
}

LogicalResult DynamicScaleOp::verify() {
  if (failed(checkRank(*this, getInput(), "the input", 2)) ||
      failed(checkRank(*this, getResult(), "the result", 2)))
    return failure();
  int64_t columns = tensorType(getInput()).getDimSize(1);
  int64_t group = getGroup();
  if (group < 0 || (group > 0 && columns % group))
    return emitOpError() << "expected group 0 (the whole row) or a divisor of "
                         << columns << ", got " << group;
  if (!(getLimit().convertToDouble() > 0))
    return emitOpError() << "expected a positive limit, got "
                         << getLimit().convertToDouble();
  if (failed(checkSize(*this, getResult(), "the result", 0,
                       tensorType(getInput()).getDimSize(0),
                       "rows of the input")))
    return failure();
  return checkSize(*this, getResult(), "the result", 1,
                   group ? columns / group : 1, "one scale a group");
}

LogicalResult ScaledLinearOp::verify() {
  if (failed(checkRank(*this, getInput(), "the input", 2)) ||
      failed(checkRank(*this, getWeight(), "the weight", 2)) ||
      failed(checkRank(*this, getResult(), "the result", 2)))
    return failure();
  RankedTensorType weight = tensorType(getWeight());
  if (failed(checkSize(*this, getInput(), "the input", 1, weight.getDimSize(1),
                       "in features of the weight")) ||
      failed(checkSize(*this, getResult(), "the result", 0,
                       tensorType(getInput()).getDimSize(0),
                       "rows of input")) ||
      failed(checkSize(*this, getResult(), "the result", 1,
                       weight.getDimSize(0), "out features of the weight")) ||
      failed(checkScale(*this, getWeightScale(), "weight_scale", weight)) ||
      failed(checkScale(*this, getInputScale(), "input_scale",
                        tensorType(getInput()))) ||
      failed(checkScale(*this, getWeightZero(), "weight_zero", weight)))
    return failure();
  if (!getBias())
    return success();
  if (failed(checkRank(*this, getBias(), "the bias", 1)))
    return failure();
  return checkSize(*this, getBias(), "the bias", 0, weight.getDimSize(0),
                   "out features of the weight");
}
