//===- LlmDialect.h - the llm dialect ---------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The `llm` dialect: its types, attributes and ops.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_DIALECTS_LLM_LLMDIALECT_H
#define LLMC_DIALECTS_LLM_LLMDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/llm/LlmDialect.h.inc"

#include "dialects/llm/LlmEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/llm/LlmAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/llm/LlmTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/llm/LlmOps.h.inc"

#endif // LLMC_DIALECTS_LLM_LLMDIALECT_H
