//===- LlmCacheOps.cpp - the paged KV cache -------------------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmVerify.h"

using namespace mlir;
using namespace llmc::llm;

LogicalResult KvLayerOp::verify() {
  ArrayRef<KvType> layers = getCache().getType().getLayers();
  if (getLayer() >= layers.size())
    return emitOpError() << "expected a layer in [0, " << layers.size()
                         << "), got " << int64_t(getLayer());
  if (layers[getLayer()] != getType())
    return emitOpError() << "layer " << int64_t(getLayer()) << " is "
                         << layers[getLayer()] << ", got " << getType();
  return success();
}

LogicalResult KvAppendOp::verify() {
  KvType kv = getKv().getType();
  if (failed(checkRank(*this, getKey(), "the key", 3)) ||
      failed(checkRank(*this, getValue(), "the value", 3)))
    return failure();
  if (failed(checkSize(*this, getKey(), "the key", 1, kv.getHeads(),
                       "heads of the cache")) ||
      failed(checkSize(*this, getKey(), "the key", 2, kv.getHeadDim(),
                       "head_dim of the cache")) ||
      failed(checkSize(*this, getValue(), "the value", 0,
                       tensorType(getKey()).getDimSize(0), "rows of the key")))
    return failure();
  if (kv.getVHeadDim() == 0)
    return success();
  if (failed(checkSize(*this, getValue(), "the value", 1, kv.getHeads(),
                       "heads of the cache")))
    return failure();
  return checkSize(*this, getValue(), "the value", 2, kv.getVHeadDim(),
                   "v_head_dim of the cache");
}
