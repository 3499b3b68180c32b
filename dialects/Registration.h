// Registration of every llmc dialect.
#pragma once

namespace mlir {
class DialectRegistry;
}

namespace llmc {
void registerAllDialects(mlir::DialectRegistry &registry);
} // namespace llmc
