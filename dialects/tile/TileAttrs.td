// Attributes of the `tile` dialect.
#ifndef LLMC_TILE_ATTRS_TD
#define LLMC_TILE_ATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "dialects/tile/TileEnums.td"

class Tile_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Tile_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

#endif // LLMC_TILE_ATTRS_TD
