#include "dialects/Registration.h"

#include "dialects/llm/LlmDialect.h"
#include "dialects/tile/TileDialect.h"

void llmc::registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<llm::LlmDialect, tile::TileDialect>();
}
