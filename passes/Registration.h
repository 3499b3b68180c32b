// Registration of every llmc pass and pipeline.
#pragma once

namespace mlir {
class DialectRegistry;
}

namespace llmc {
// Passes of all phases and the pipelines made of them.
void registerAllPasses();

// Interfaces that passes attach to dialects.
void registerAllExtensions(mlir::DialectRegistry &registry);
} // namespace llmc
