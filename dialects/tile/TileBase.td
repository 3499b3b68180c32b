// What every op file of the `tile` dialect starts from.
#ifndef LLMC_TILE_BASE_TD
#define LLMC_TILE_BASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/tile/TileAttrs.td"
include "dialects/tile/TileTypes.td"

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits>;

def Tile_Offset : AnyTypeOf<[I32, I64], "i32 or i64">;
def Tile_Memory : AnyTypeOf<[Tile_Ptr, Tile_Smem], "global or shared memory">;
def Tile_AccOrFrag : AnyTypeOf<[Tile_Acc, Tile_Frag], "accumulator or fragment">;

#endif // LLMC_TILE_BASE_TD
