// Types of the `tile` dialect.
#ifndef LLMC_TILE_TYPES_TD
#define LLMC_TILE_TYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "dialects/tile/TileDialect.td"

class Tile_Type<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<Tile_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

#endif // LLMC_TILE_TYPES_TD
