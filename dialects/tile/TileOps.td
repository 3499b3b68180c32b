// Ops of the `tile` dialect.
#ifndef LLMC_TILE_OPS_TD
#define LLMC_TILE_OPS_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/tile/TileAttrs.td"
include "dialects/tile/TileTypes.td"

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits>;

def Tile_YieldOp : Tile_Op<"yield", [Pure, ReturnLike, Terminator]> {
  let summary = "Ends a region of the dialect";
  let description = [{
    Hands the operands to the op around it.

    ```mlir
    tile.yield %x : f32
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

#endif // LLMC_TILE_OPS_TD
