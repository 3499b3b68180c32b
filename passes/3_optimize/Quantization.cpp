//===- Quantization.cpp - what the quantization passes share --------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/3_optimize/Quantization.h"

using namespace mlir;
using namespace llmc;

static constexpr llvm::StringLiteral kQuantization = "llm.quantization";

llm::QuantizationAttr llmc::quantizationOf(llm::LinearOp linear) {
  return linear->getAttrOfType<llm::QuantizationAttr>(kQuantization);
}

void llmc::setQuantization(llm::LinearOp linear, llm::QuantizationAttr attr) {
  if (attr)
    linear->setAttr(kQuantization, attr);
}

double llmc::codeLimit(Type type) {
  if (auto floating = dyn_cast<FloatType>(type))
    return llvm::APFloat::getLargest(floating.getFloatSemantics())
        .convertToDouble();
  return double((int64_t(1) << (type.getIntOrFloatBitWidth() - 1)) - 1);
}
