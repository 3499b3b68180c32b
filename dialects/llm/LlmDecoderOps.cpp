//===- LlmDecoderOps.cpp - the blocks of a decoder ------------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmVerify.h"

using namespace mlir;
using namespace llmc::llm;

static int64_t lastSize(Value value) {
  return tensorType(value).getShape().back();
}

static LogicalResult checkVector(Operation *op, Value vector, StringRef name,
                                 int64_t size, StringRef of) {
  if (!vector)
    return success();
  if (failed(checkRank(op, vector, name, 1)))
    return failure();
  return checkSize(op, vector, name, 0, size, of);
}

LogicalResult EmbeddingOp::verify() {
  if (failed(checkRank(*this, getIds(), "ids", 1)) ||
      failed(checkRank(*this, getTable(), "the table", 2)) ||
      failed(checkRank(*this, getResult(), "the result", 2)))
    return failure();
  if (failed(checkSize(*this, getResult(), "the result", 0,
                       tensorType(getIds()).getDimSize(0), "ids")))
    return failure();
  return checkSize(*this, getResult(), "the result", 1, lastSize(getTable()),
                   "row of the table");
}

LogicalResult LinearOp::verify() {
  if (failed(checkRank(*this, getInput(), "the input", 2)) ||
      failed(checkRank(*this, getWeight(), "the weight", 2)) ||
      failed(checkRank(*this, getResult(), "the result", 2)))
    return failure();
  RankedTensorType weight = tensorType(getWeight());
  if (failed(checkSize(*this, getInput(), "the input", 1, weight.getDimSize(1),
                       "in features of the weight")) ||
      failed(checkSize(*this, getResult(), "the result", 0,
                       tensorType(getInput()).getDimSize(0), "rows of input")))
    return failure();
  if (failed(checkSize(*this, getResult(), "the result", 1,
                       weight.getDimSize(0), "out features of the weight")))
    return failure();
  return checkVector(*this, getBias(), "the bias", weight.getDimSize(0),
                     "out features of the weight");
}

LogicalResult RmsNormOp::verify() {
  if (failed(checkSameShape(*this, getInput(), "the input", getResult(),
                            "the result")))
    return failure();
  if (tensorType(getInput()).getRank() < 1)
    return emitOpError("expected an input of rank 1 or more");
  return checkVector(*this, getGamma(), "gamma", lastSize(getInput()),
                     "last dimension of the input");
}

LogicalResult LayerNormOp::verify() {
  if (failed(checkSameShape(*this, getInput(), "the input", getResult(),
                            "the result")))
    return failure();
  if (tensorType(getInput()).getRank() < 1)
    return emitOpError("expected an input of rank 1 or more");
  if (failed(checkVector(*this, getGamma(), "gamma", lastSize(getInput()),
                         "last dimension of the input")))
    return failure();
  return checkVector(*this, getBeta(), "beta", lastSize(getInput()),
                     "last dimension of the input");
}

LogicalResult RopeTableOp::verify() {
  if (failed(checkRank(*this, getPositions(), "positions", 1)) ||
      failed(checkRank(*this, getInvFreq(), "inv_freq", 1)) ||
      failed(checkRank(*this, getCos(), "cos", 2)) ||
      failed(checkSameShape(*this, getCos(), "cos", getSin(), "sin")))
    return failure();
  if (failed(checkSize(*this, getCos(), "cos", 0,
                       tensorType(getPositions()).getDimSize(0), "positions")))
    return failure();
  return checkSize(*this, getCos(), "cos", 1,
                   tensorType(getInvFreq()).getDimSize(0), "inv_freq");
}

LogicalResult RopeOp::verify() {
  if (failed(checkRank(*this, getInput(), "the input", 3)) ||
      failed(checkRank(*this, getCos(), "cos", 2)) ||
      failed(checkSameShape(*this, getCos(), "cos", getSin(), "sin")) ||
      failed(checkSameShape(*this, getInput(), "the input", getResult(),
                            "the result")) ||
      failed(checkSize(*this, getCos(), "cos", 0,
                       tensorType(getInput()).getDimSize(0), "rows of input")))
    return failure();
  int64_t rotary = 2 * lastSize(getCos());
  if (rotary > lastSize(getInput()))
    return emitOpError() << "rotates " << rotary
                         << " elements of each head, but heads have "
                         << lastSize(getInput());
  return success();
}

// What dense and paged attention share: shapes of query, heads and options.
static LogicalResult checkAttention(Operation *op, Value query, Value result,
                                    int64_t kvHeads, int64_t headDim,
                                    int64_t vHeadDim, Value sinks, Value alibi,
                                    std::optional<int64_t> window,
                                    std::optional<llvm::APFloat> softcap) {
  if (failed(checkRank(op, query, "the query", 3)) ||
      failed(checkRank(op, result, "the result", 3)))
    return failure();
  RankedTensorType type = tensorType(query);
  if (failed(checkSize(op, query, "the query", 2, headDim,
                       "head dimension of the keys")) ||
      failed(checkSize(op, result, "the result", 0, type.getDimSize(0),
                       "rows of the query")) ||
      failed(checkSize(op, result, "the result", 1, type.getDimSize(1),
                       "heads of the query")) ||
      failed(checkSize(op, result, "the result", 2, vHeadDim,
                       "head dimension of the values")))
    return failure();
  if (kvHeads < 1 || type.isDynamicDim(1))
    return op->emitOpError() << "expected static numbers of heads, got "
                             << sizeText(type.getDimSize(1)) << " and "
                             << sizeText(kvHeads) << " key heads";
  if (type.getDimSize(1) % kvHeads)
    return op->emitOpError()
           << "expected the number of query heads to be a multiple of the "
           << kvHeads << " key heads, got " << type.getDimSize(1);
  if (window && *window <= 0)
    return op->emitOpError() << "expected a positive window, got " << *window;
  if (softcap && !(softcap->convertToDouble() > 0))
    return op->emitOpError()
           << "expected a positive softcap, got " << softcap->convertToDouble();
  if (failed(checkVector(op, sinks, "sinks", type.getDimSize(1),
                         "heads of the query")))
    return failure();
  return checkVector(op, alibi, "alibi_slopes", type.getDimSize(1),
                     "heads of the query");
}

LogicalResult AttentionOp::verify() {
  if (failed(checkRank(*this, getKey(), "the key", 3)) ||
      failed(checkRank(*this, getValue(), "the value", 3)))
    return failure();
  RankedTensorType key = tensorType(getKey());
  if (failed(checkRank(*this, getQuery(), "the query", 3)) ||
      failed(checkSize(*this, getQuery(), "the query", 0, key.getDimSize(0),
                       "rows of the key")) ||
      failed(checkSize(*this, getValue(), "the value", 0, key.getDimSize(0),
                       "rows of the key")) ||
      failed(checkSize(*this, getValue(), "the value", 1, key.getDimSize(1),
                       "heads of the key")))
    return failure();
  return checkAttention(*this, getQuery(), getResult(), key.getDimSize(1),
                        key.getDimSize(2), lastSize(getValue()), getSinks(),
                        getAlibiSlopes(), getWindow(), getSoftcap());
}

LogicalResult PagedAttentionOp::verify() {
  KvType kv = getKv().getType();
  // Without values of their own, values are as long as the result says, a
  // prefix of the keys.
  int64_t vHeadDim = kv.getVHeadDim();
  if (!vHeadDim) {
    if (failed(checkRank(*this, getResult(), "the result", 3)))
      return failure();
    vHeadDim = lastSize(getResult());
    if (vHeadDim > kv.getHeadDim())
      return emitOpError() << "expected values of at most " << kv.getHeadDim()
                           << " elements, a prefix of the keys, got "
                           << vHeadDim;
  }
  return checkAttention(*this, getQuery(), getResult(), kv.getHeads(),
                        kv.getHeadDim(), vHeadDim, getSinks(), getAlibiSlopes(),
                        getWindow(), getSoftcap());
}

LogicalResult ActivationOp::verify() {
  return checkSameShape(*this, getInput(), "the input", getResult(),
                        "the result");
}

OpFoldResult ActivationOp::fold(FoldAdaptor) {
  if (getKind() == ActivationKind::Identity &&
      getInput().getType() == getType())
    return getInput();
  return {};
}

LogicalResult GluOp::verify() {
  if (failed(checkSameShape(*this, getGate(), "the gate", getUp(), "up")))
    return failure();
  return checkSameShape(*this, getGate(), "the gate", getResult(),
                        "the result");
}

LogicalResult PackedGluOp::verify() {
  RankedTensorType input = tensorType(getInput());
  if (input.getRank() < 1 || ShapedType::isDynamic(input.getShape().back()) ||
      input.getShape().back() % 2)
    return emitOpError()
           << "expected a static, even last dimension (gate and up), got "
           << input;
  int64_t block = getBlock(), factor = input.getShape().back() / 2;
  if (getLayout() == GluLayout::Interleaved && (block < 1 || factor % block))
    return emitOpError() << "expected a block that divides the " << factor
                         << " columns of gate and of up, got " << block;
  if (failed(checkRank(*this, getResult(), "the result", input.getRank())))
    return failure();
  for (int64_t dim = 0; dim < input.getRank(); ++dim) {
    bool last = dim + 1 == input.getRank();
    int64_t size = input.getDimSize(dim);
    if (failed(checkSize(*this, getResult(), "the result", dim,
                         last ? size / 2 : size,
                         last ? "half of the input" : "input")))
      return failure();
  }
  return success();
}

LogicalResult GatherRowsOp::verify() {
  RankedTensorType input = tensorType(getInput());
  if (failed(checkRank(*this, getRows(), "rows", 1)) ||
      failed(checkRank(*this, getResult(), "the result", input.getRank())))
    return failure();
  if (input.getRank() < 1)
    return emitOpError("expected an input of rank 1 or more");
  if (input.getElementType() != tensorType(getResult()).getElementType())
    return emitOpError() << "expected equal element types, got " << input
                         << " and " << getType();
  for (int64_t dim = 0; dim < input.getRank(); ++dim)
    if (failed(checkSize(*this, getResult(), "the result", dim,
                         dim ? input.getDimSize(dim)
                             : tensorType(getRows()).getDimSize(0),
                         dim ? "row of the input" : "rows")))
      return failure();
  return success();
}

LogicalResult SampleOp::verify() {
  if (failed(checkRank(*this, getLogits(), "logits", 2)))
    return failure();
  int64_t rows = tensorType(getLogits()).getDimSize(0);
  std::pair<StringRef, Value> vectors[] = {{"temperature", getTemperature()},
                                           {"top_k", getTopK()},
                                           {"top_p", getTopP()},
                                           {"min_p", getMinP()},
                                           {"seed", getSeed()},
                                           {"index", getIndex()},
                                           {"the result", getResult()}};
  for (auto [name, vector] : vectors)
    if (failed(checkVector(*this, vector, name, rows, "rows of the logits")))
      return failure();
  return success();
}
