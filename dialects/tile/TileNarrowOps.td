// Conversions between float32 and the 8-bit floats of memory.
#ifndef LLMC_TILE_NARROW_OPS_TD
#define LLMC_TILE_NARROW_OPS_TD

include "dialects/tile/TileBase.td"

def Tile_Float32s : AnyTypeOf<[F32, VectorOfRankAndType<[1], [F32]>],
                              "f32 or a vector of it">;
def Tile_Float8s : AnyTypeOf<
    [F8E4M3FN, F8E5M2, VectorOfRankAndType<[1], [F8E4M3FN, F8E5M2]>],
    "f8E4M3FN, f8E5M2 or a vector of one">;

class Tile_NarrowOpBase<string mnemonic> : Tile_Op<mnemonic, [Pure]> {
  let assemblyFormat = [{
    $value attr-dict `:` type($value) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_NarrowOp : Tile_NarrowOpBase<"narrow"> {
  let summary = "Rounds float32 to an 8-bit float";
  let description = [{
    To nearest, ties to even; what is larger than the largest finite value
    becomes that value, infinity too, and NaN stays NaN. `arith.truncf` has no
    such saturation, and no lowering for these types.

    ```mlir
    %q = tile.narrow %x : vector<4xf32> -> vector<4xf8E4M3FN>
    ```
    One instruction converts two elements.
  }];
  let arguments = (ins Tile_Float32s:$value);
  let results = (outs Tile_Float8s:$result);
}

def Tile_WidenOp : Tile_NarrowOpBase<"widen"> {
  let summary = "Converts an 8-bit float to float32; exact";
  let description = [{
    ```mlir
    %x = tile.widen %q : vector<4xf8E4M3FN> -> vector<4xf32>
    ```
  }];
  let arguments = (ins Tile_Float8s:$value);
  let results = (outs Tile_Float32s:$result);
}

#endif // LLMC_TILE_NARROW_OPS_TD
