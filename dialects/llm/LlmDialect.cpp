//===- LlmDialect.cpp - the llm dialect -----------------------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/llm/LlmDialect.h"

#include "dialects/llm/LlmAssembly.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc::llm;

#include "dialects/llm/LlmDialect.cpp.inc"

#include "dialects/llm/LlmEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/llm/LlmAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/llm/LlmTypes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/llm/LlmOps.cpp.inc"

void LlmDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/llm/LlmAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/llm/LlmTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/llm/LlmOps.cpp.inc"
      >();
}
