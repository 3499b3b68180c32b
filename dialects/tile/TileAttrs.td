// Attributes of the `tile` dialect.
#ifndef LLMC_TILE_ATTRS_TD
#define LLMC_TILE_ATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "dialects/tile/TileEnums.td"

class Tile_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Tile_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

class Tile_EnumAttr<EnumInfo info, string attrMnemonic>
    : EnumAttr<Tile_Dialect, info, attrMnemonic> {
  // No blank: ops print these between parentheses.
  let assemblyFormat = "`` $value";
}

def Tile_ProducePartAttr : Tile_EnumAttr<Tile_ProducePart, "part">;
def Tile_ReduceKindAttr : Tile_EnumAttr<Tile_ReduceKind, "reduce">;
def Tile_ScopeAttr : Tile_EnumAttr<Tile_Scope, "scope">;
def Tile_CacheAttr : Tile_EnumAttr<Tile_Cache, "cache">;
def Tile_AtomicKindAttr : Tile_EnumAttr<Tile_AtomicKind, "atomic">;
def Tile_AxisAttr : Tile_EnumAttr<Tile_Axis, "axis">;

#endif // LLMC_TILE_ATTRS_TD
