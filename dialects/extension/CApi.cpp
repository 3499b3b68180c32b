#include "dialects/extension/CApi.h"

#include "dialects/Registration.h"
#include "dialects/llm/LlmDialect.h"
#include "dialects/tile/TileDialect.h"
#include "passes/Registration.h"

#include "mlir/CAPI/IR.h"

void llmcRegisterDialects(MlirContext context) {
  mlir::DialectRegistry registry;
  llmc::registerAllDialects(registry);
  llmc::registerAllExtensions(registry);
  unwrap(context)->appendDialectRegistry(registry);
  unwrap(context)
      ->loadDialect<llmc::llm::LlmDialect, llmc::tile::TileDialect>();
}

void llmcRegisterPasses() { llmc::registerAllPasses(); }
