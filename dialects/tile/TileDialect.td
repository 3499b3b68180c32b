// The `tile` dialect: one GPU kernel as roles, rings and tiles.
#ifndef LLMC_TILE_DIALECT_TD
#define LLMC_TILE_DIALECT_TD

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::llmc::tile";
  let summary = "One GPU kernel, as roles, rings and tiles";
  let description = [{
    Each module of this dialect is one distinct kernel.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerTypes();
  }];
}

#endif // LLMC_TILE_DIALECT_TD
