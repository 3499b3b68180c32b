//===- Parameters.h - helpers for llm.parameter -----------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_PARAMETERS_H
#define LLMC_PASSES_PARAMETERS_H

#include "dialects/llm/LlmDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"

namespace llmc {

// Erases reads that nothing uses and parameters that nothing reads. An engine
// stores every parameter of its module, so a pass that replaces one must not
// leave the old one behind.
inline void eraseUnusedParameters(mlir::ModuleOp module) {
  llvm::DenseSet<mlir::StringAttr> read;
  module.walk([&](llm::WeightOp weight) {
    if (weight->use_empty())
      weight.erase();
    else
      read.insert(weight.getNameAttr().getAttr());
  });
  for (auto parameter :
       llvm::make_early_inc_range(module.getOps<llm::ParameterOp>()))
    if (!read.contains(parameter.getSymNameAttr()))
      parameter.erase();
}

} // namespace llmc

#endif // LLMC_PASSES_PARAMETERS_H
