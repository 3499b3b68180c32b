//===- Quantization.h - what the quantization passes share ------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_3_OPTIMIZE_QUANTIZATION_H
#define LLMC_PASSES_3_OPTIMIZE_QUANTIZATION_H

#include "dialects/llm/LlmDialect.h"

namespace llmc {

// The decision about a linear; null: it stays as it is.
llm::QuantizationAttr quantizationOf(llm::LinearOp linear);
void setQuantization(llm::LinearOp linear, llm::QuantizationAttr attr);

// The largest value of a code type whose negative it has too.
double codeLimit(mlir::Type type);

} // namespace llmc

#endif // LLMC_PASSES_3_OPTIMIZE_QUANTIZATION_H
