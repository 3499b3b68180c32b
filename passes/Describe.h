// Where in the model an op comes from, for messages about the model.
#ifndef LLMC_PASSES_DESCRIBE_H
#define LLMC_PASSES_DESCRIBE_H

#include "mlir/IR/Location.h"

#include <string>

namespace llmc {

/// `model.layers.0.mlp (modeling_llama.py:123)`, as far as the location knows.
inline std::string describe(mlir::Location loc) {
  std::string module, source;
  loc->walk([&](mlir::Location inner) {
    if (auto name = mlir::dyn_cast<mlir::NameLoc>(inner);
        name && module.empty())
      module = name.getName().str();
    if (auto file = mlir::dyn_cast<mlir::FileLineColLoc>(inner);
        file && source.empty())
      source =
          (file.getFilename().getValue() + ":" + llvm::Twine(file.getLine()))
              .str();
    return mlir::WalkResult::advance();
  });
  if (module.empty())
    return source.empty() ? "an unknown place of the model" : source;
  return source.empty() ? module : module + " (" + source + ")";
}

} // namespace llmc

#endif // LLMC_PASSES_DESCRIBE_H
