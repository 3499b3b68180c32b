//===- LlmTypes.cpp - types of the llm dialect ----------------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/llm/LlmDialect.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace llmc::llm;

LogicalResult KvType::verify(function_ref<InFlightDiagnostic()> emitError,
                             int64_t heads, int64_t headDim, int64_t vHeadDim,
                             int64_t block, Type element) {
  if (heads <= 0 || headDim <= 0 || vHeadDim < 0)
    return emitError() << "expected positive heads and head_dim and a "
                          "non-negative v_head_dim, got heads = "
                       << heads << ", head_dim = " << headDim
                       << ", v_head_dim = " << vHeadDim;
  if (block <= 0 || (block & (block - 1)))
    return emitError() << "expected block to be a power of two, got " << block;
  if (!isa<FloatType, IntegerType>(element))
    return emitError() << "expected a float or integer element type, got "
                       << element;
  return success();
}

// Layers are printed as `count x type` runs: a model has few distinct layers.
Type KvCacheType::parse(AsmParser &parser) {
  SmallVector<KvType> layers;
  auto parseRun = [&]() -> ParseResult {
    int64_t count;
    KvType layer;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseInteger(count) || parser.parseKeyword("x") ||
        parser.parseType(layer))
      return failure();
    if (count <= 0)
      return parser.emitError(loc, "expected a positive number of layers");
    layers.append(count, layer);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseRun))
    return {};
  return get(parser.getContext(), layers);
}

void KvCacheType::print(AsmPrinter &printer) const {
  printer << '<';
  ArrayRef<KvType> layers = getLayers();
  for (size_t begin = 0; begin < layers.size();) {
    size_t end = begin + 1;
    while (end < layers.size() && layers[end] == layers[begin])
      ++end;
    if (begin)
      printer << ", ";
    printer << (end - begin) << " x " << Type(layers[begin]);
    begin = end;
  }
  printer << '>';
}
