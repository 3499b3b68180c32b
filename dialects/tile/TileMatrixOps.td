// Tensor-core multiplies.
#ifndef LLMC_TILE_MATRIX_OPS_TD
#define LLMC_TILE_MATRIX_OPS_TD

include "dialects/tile/TileBase.td"

def Tile_ZeroAccOp : Tile_Op<"zero_acc", [Pure]> {
  let summary = "An accumulator that has not been written yet";
  let description = [{
    Costs nothing: the first multiply on it overwrites instead of adding. When
    it starts a loop, `tile-peel-first-step` takes the first turn out of the
    loop, which must therefore run at least once.

    ```mlir
    %zero = tile.zero_acc : !tile.acc<64x256xf32>
    ```
  }];
  let results = (outs Tile_Acc:$acc);
  let assemblyFormat = "attr-dict `:` type($acc)";
}

def Tile_WgmmaOp : Tile_Op<"wgmma"> {
  let summary = "Starts a warpgroup multiply: acc += a * b";
  let description = [{
    One batch: fence, every k-step of the tiles, commit. A is 64 x K in shared
    memory, or an `operand_a` fragment; B is N x K (K-major) or, with
    `transpose_b`, K x N (as V lies in attention). The result may only be read
    after `tile.wgmma_wait`.

    ```mlir
    %c1 = tile.wgmma %a, %b, %c0 : !tile.smem<64x64xbf16, swizzle = 128>,
      !tile.smem<256x64xbf16, swizzle = 128>, !tile.acc<64x256xf32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Tile_Smem, Tile_Frag]>:$a, Tile_Smem:$b,
                       Tile_AccOrFrag:$acc, UnitAttr:$transpose_b);
  let results = (outs Tile_Acc:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $acc (`transpose_b` $transpose_b^)? attr-dict
    `:` type($a) `,` type($b) `,` type($acc) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_WgmmaWaitOp : Tile_Op<"wgmma_wait"> {
  let summary = "Waits until at most `pending` multiplies are in flight";
  let description = [{
    Takes and returns accumulators, so that no use can move above it. A result
    of type `!tile.frag` is settled; one of type `!tile.acc` may still be in
    flight (the newest `pending` batches).

    ```mlir
    %c = tile.wgmma_wait %c1 : !tile.acc<64x256xf32> -> !tile.frag<64x256xf32>
    %s = tile.wgmma_wait %s1 pending(1) : !tile.acc<64x128xf32>
      -> !tile.frag<64x128xf32>
    ```
  }];
  let arguments = (ins Variadic<Tile_Acc>:$accs,
                       DefaultValuedAttr<I32Attr, "0">:$pending);
  let results = (outs Variadic<Tile_AccOrFrag>:$results);
  let assemblyFormat = [{
    $accs (`pending` `(` $pending^ `)`)? attr-dict
    `:` type($accs) `->` type($results)
  }];
  let hasVerifier = 1;
}

def Tile_MmaOp : Tile_Op<"mma", [AttrSizedOperandSegments]> {
  let summary = "Warp multiplies on registers and shared memory: acc += a * b";
  let description = [{
    The portable path (mma.sync m16n8k16, sm_80 and later): each A is an
    `operand_a` fragment, 16 rows of it in a warp; B is an N x K tile in shared
    memory (K x N with `transpose_b`), which is read once for all of them.
    Synchronous: the results are settled.

    ```mlir
    %c1 = tile.mma [%a], %b, [%c0] : [!tile.frag<16x64xbf16, operand_a>],
      !tile.smem<64x64xbf16, swizzle = 128>, [!tile.frag<16x64xf32>]
      -> !tile.frag<16x64xf32>
    ```
  }];
  let arguments = (ins Variadic<Tile_Frag>:$a, Tile_Smem:$b,
                       Variadic<Tile_Frag>:$acc, UnitAttr:$transpose_b);
  let results = (outs Variadic<Tile_Frag>:$results);
  let assemblyFormat = [{
    `[` $a `]` `,` $b `,` `[` $acc `]` (`transpose_b` $transpose_b^)? attr-dict
    `:` `[` type($a) `]` `,` type($b) `,` `[` type($acc) `]`
    `->` type($results)
  }];
  let hasVerifier = 1;
}

def Tile_LoadMatrixOp : Tile_Op<"load_matrix"> {
  let summary = "Reads an A operand from shared memory (ldmatrix)";
  let description = [{
    16 rows for one warp, or 64 for a warpgroup (each warp its own 16).

    ```mlir
    %a = tile.load_matrix %s : !tile.smem<16x64xbf16, swizzle = 128>
      -> !tile.frag<16x64xbf16, operand_a>
    ```
  }];
  let arguments = (ins Tile_Smem:$tile);
  let results = (outs Tile_Frag:$result);
  let assemblyFormat = "$tile attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
}

#endif // LLMC_TILE_MATRIX_OPS_TD
