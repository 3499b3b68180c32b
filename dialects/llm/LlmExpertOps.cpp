//===- LlmExpertOps.cpp - mixture of experts ------------------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmVerify.h"

using namespace mlir;
using namespace llmc::llm;

LogicalResult MoeRouteOp::verify() {
  if (failed(checkRank(*this, getLogits(), "logits", 2)) ||
      failed(checkRank(*this, getWeights(), "weights", 2)) ||
      failed(checkRank(*this, getExperts(), "experts", 2)))
    return failure();
  int64_t experts = tensorType(getLogits()).getDimSize(1);
  if (getTopK() < 1 || getTopK() > uint64_t(experts))
    return emitOpError() << "expected top_k in [1, " << experts << "], got "
                         << int64_t(getTopK());
  if (getScoring() != "softmax" && getScoring() != "sigmoid")
    return emitOpError()
           << "expected scoring \"softmax\" or \"sigmoid\", got \""
           << getScoring() << "\"";
  if (getGroups().has_value() != getTopGroups().has_value())
    return emitOpError("expected groups and top_groups together or neither");
  if (getGroups() && (*getGroups() < 1 || experts % *getGroups() ||
                      *getTopGroups() < 1 || *getTopGroups() > *getGroups()))
    return emitOpError() << "expected groups that divide " << experts
                         << " experts and top_groups in [1, groups], got "
                         << int64_t(*getGroups()) << " and "
                         << int64_t(*getTopGroups());
  if (getBias()) {
    if (failed(checkRank(*this, getBias(), "the bias", 1)) ||
        failed(checkSize(*this, getBias(), "the bias", 0, experts,
                         "experts of the logits")))
      return failure();
  }
  int64_t rows = tensorType(getLogits()).getDimSize(0);
  for (Value result : {getWeights(), getExperts()})
    if (failed(checkSize(*this, result, "the result", 0, rows,
                         "rows of the logits")) ||
        failed(checkSize(*this, result, "the result", 1, getTopK(), "top_k")))
      return failure();
  return success();
}

// A bias of one row an expert.
static LogicalResult checkExpertBias(Operation *op, Value bias, StringRef name,
                                     int64_t experts, int64_t columns,
                                     StringRef of) {
  if (!bias)
    return success();
  if (failed(checkRank(op, bias, name, 2)) ||
      failed(checkSize(op, bias, name, 0, experts, "experts of gate_up")))
    return failure();
  return checkSize(op, bias, name, 1, columns, of);
}

LogicalResult MoeMlpOp::verify() {
  if (failed(checkRank(*this, getInput(), "the input", 2)) ||
      failed(checkRank(*this, getWeights(), "weights", 2)) ||
      failed(checkRank(*this, getGateUp(), "gate_up", 3)) ||
      failed(checkRank(*this, getDown(), "down", 3)) ||
      failed(checkSameShape(*this, getWeights(), "weights", getExperts(),
                            "experts")) ||
      failed(checkSameShape(*this, getInput(), "the input", getResult(),
                            "the result")))
    return failure();
  RankedTensorType gateUp = tensorType(getGateUp());
  int64_t hidden = tensorType(getInput()).getDimSize(1);
  int64_t experts = gateUp.getDimSize(0);
  if (gateUp.getDimSize(1) % 2)
    return emitOpError()
           << "expected gate_up to have an even number of rows an "
              "expert, got "
           << gateUp.getDimSize(1);
  if (failed(checkSize(*this, getWeights(), "weights", 0,
                       tensorType(getInput()).getDimSize(0),
                       "rows of the input")) ||
      failed(checkSize(*this, getGateUp(), "gate_up", 2, hidden,
                       "columns of the input")) ||
      failed(checkSize(*this, getDown(), "down", 0, experts,
                       "experts of gate_up")) ||
      failed(checkSize(*this, getDown(), "down", 1, hidden,
                       "columns of the input")) ||
      failed(checkSize(*this, getDown(), "down", 2, gateUp.getDimSize(1) / 2,
                       "half of gate_up")) ||
      failed(checkExpertBias(*this, getGateUpBias(), "gate_up_bias", experts,
                             gateUp.getDimSize(1), "rows of gate_up")))
    return failure();
  return checkExpertBias(*this, getDownBias(), "down_bias", experts, hidden,
                         "columns of the input");
}
