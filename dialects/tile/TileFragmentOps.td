// Work on fragments: elementwise, rows, epilogues.
#ifndef LLMC_TILE_FRAGMENT_OPS_TD
#define LLMC_TILE_FRAGMENT_OPS_TD

include "dialects/tile/TileBase.td"

def Tile_FillOp : Tile_Op<"fill", [Pure]> {
  let summary = "A fragment whose elements all equal a scalar";
  let description = [{
    ```mlir
    %o = tile.fill %zero : f32 -> !tile.frag<64x128xf32>
    ```
  }];
  let arguments = (ins AnyType:$value);
  let results = (outs Tile_Frag:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_MapOp : Tile_Op<"map", [AttrSizedOperandSegments,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Elementwise work on fragments, with coordinates";
  let description = [{
    The body sees, per fragment, one element (`f32`) or two neighbours of a row
    (`vector<2xf32>`); a `rows` fragment beside matrices gives the value of the
    row as a scalar. Then come, always, the row and the column (of the first
    neighbour) as i32, counted from `at`. It yields one value per result. If
    every operand is a `rows` fragment, the column is that of `at`.

    ```mlir
    %p = tile.map %s, %max at(%q0, %k0)
        : !tile.frag<64x128xf32>, !tile.frag<64xf32, rows>
        -> !tile.frag<64x128xf32> {
    ^bb0(%x: f32, %m: f32, %row: i32, %col: i32):
      ...
      tile.yield %e : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Frag>:$fragments, Optional<I32>:$row,
                       Optional<I32>:$column);
  let results = (outs Variadic<Tile_Frag>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $fragments (`at` `(` $row^ `,` $column `)`)? attr-dict
    `:` type($fragments) `->` type($results) $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_EpilogueOp : Tile_Op<"epilogue", [AttrSizedOperandSegments,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Visits the elements of fragments, to store them";
  let description = [{
    The body is that of `tile.map`, for its effects: it loads residuals, adds
    biases, converts and stores, each under the bounds it wants.

    ```mlir
    tile.epilogue %c at(%m0, %n0) : !tile.frag<64x256xf32> {
    ^bb0(%v: vector<2xf32>, %row: i32, %col: i32):
      %h = arith.truncf %v : vector<2xf32> to vector<2xbf16>
      tile.store %h, %d[%offset] if %inside : vector<2xbf16>, !tile.ptr<bf16>
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Frag>:$fragments, Optional<I32>:$row,
                       Optional<I32>:$column);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $fragments (`at` `(` $row^ `,` $column `)`)? attr-dict
    `:` type($fragments) $body
  }];
  let hasVerifier = 1;
}

def Tile_StoreTmaOp : Tile_Op<"store_tma"> {
  let summary = "Stores a fragment through shared memory and TMA";
  let description = [{
    Per slab of columns: wait for the buffer, stmatrix into the swizzled tile,
    proxy fence, warpgroup barrier, one TMA store. The store runs on while the
    warpgroup goes on; a role ends only when its stores have read their
    buffers. Elements are 16 bits, or 32 (ordinary stores in place of stmatrix). TMA clips what lies outside the tensor. 5 to 11 % faster than
    direct stores on large GEMMs.

    With `accumulate` the L2 adds the elements, 32-bit floats, to what is
    there: a residual sum in place, which loads nothing. One store for each
    element, so the bits do not depend on any order.

    ```mlir
    tile.store_tma %h, %staging -> %d[%m0, %n0] : !tile.frag<64x256xbf16>,
      !tile.smem<64x64xbf16, swizzle = 128>
      -> !tile.tensor_map<64x64xbf16, swizzle = 128>
    ```
  }];
  let arguments = (ins Tile_Frag:$fragment, Tile_Smem:$staging,
                       Tile_TensorMap:$map, Variadic<I32>:$coordinates,
                       UnitAttr:$accumulate);
  let assemblyFormat = [{
    $fragment `,` $staging `->` $map `[` $coordinates `]`
    (`accumulate` $accumulate^)? attr-dict
    `:` type($fragment) `,` type($staging) `->` type($map)
  }];
  let hasVerifier = 1;
}

def Tile_ColumnsOp : Tile_Op<"columns", [Pure]> {
  let summary = "Some columns of a fragment";
  let description = [{
    Renames registers: an epilogue takes a wide fragment a part at a time, so
    that only the operands of one part are held. Offset and width are multiples
    of 8.

    ```mlir
    %part = tile.columns %c from(64) : !tile.frag<64x256xf32>
      -> !tile.frag<64x64xf32>
    ```
  }];
  let arguments = (ins Tile_Frag:$fragment, I32Attr:$offset);
  let results = (outs Tile_Frag:$result);
  let assemblyFormat = [{
    $fragment `from` `(` $offset `)` attr-dict
    `:` type($fragment) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ClusterReduceOp : Tile_Op<"cluster_reduce"> {
  let summary = "Adds a fragment over the two blocks of a cluster";
  let description = [{
    Each block has a sum over its part of K; the block of rank r gets the total
    of column half r. Every block writes what the other needs into the shared
    memory of that block, and the cluster meets once. The sum of two has one
    order, so the result has the same bits in every run. At most once in a
    kernel; all warps of the role take part, and every other role ends without
    waiting for this one.

    ```mlir
    %half = tile.cluster_reduce %c : !tile.frag<64x128xf32>
      -> !tile.frag<64x64xf32>
    ```
    `offset` is filled by `tile-allocate-shared-memory`.
  }];
  let arguments = (ins Tile_Frag:$fragment, OptionalAttr<I32Attr>:$offset);
  let results = (outs Tile_Frag:$result);
  let assemblyFormat = [{
    $fragment attr-dict `:` type($fragment) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_RowReduceOp : Tile_Op<"row_reduce", [Pure]> {
  let summary = "Maximum or sum of each row of a fragment";
  let description = [{
    `partial` leaves out the exchange between the four threads of a row: each
    keeps its own share (a softmax sum needs the exchange only at the end). A
    `rows` operand gets just that exchange.

    ```mlir
    %m = tile.row_reduce max %s : !tile.frag<64x128xf32>
      -> !tile.frag<64xf32, rows>
    ```
  }];
  let arguments = (ins Tile_ReduceKindAttr:$kind, Tile_Frag:$fragment,
                       UnitAttr:$partial);
  let results = (outs Tile_Frag:$result);
  let assemblyFormat = [{
    $kind $fragment (`partial` $partial^)? attr-dict
    `:` type($fragment) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ConvertOp : Tile_Op<"convert", [Pure]> {
  let summary = "Changes element type or layout of a fragment in registers";
  let description = [{
    To `operand_a` only from `accumulator`: the 16-bit A operand of the next
    multiply, with no exchange between threads.

    ```mlir
    %p = tile.convert %e : !tile.frag<64x128xf32>
      -> !tile.frag<64x128xbf16, operand_a>
    ```
  }];
  let arguments = (ins Tile_Frag:$fragment);
  let results = (outs Tile_Frag:$result);
  let assemblyFormat = [{
    $fragment attr-dict `:` type($fragment) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_DeinterleaveOp : Tile_Op<"deinterleave", [Pure]> {
  let summary = "Splits blocks of 8 columns (or rows) that alternate";
  let description = [{
    Gate and up projections interleaved in blocks of 8 come apart without any
    exchange: both halves of a pair are in the same thread. Along columns the
    results are half as wide; along rows they have the layout `half_rows`.

    ```mlir
    %gate, %up = tile.deinterleave columns %c : !tile.frag<64x256xf32>
      -> !tile.frag<64x128xf32>
    %gate, %up = tile.deinterleave rows %c : !tile.frag<64x16xf32>
      -> !tile.frag<32x16xf32, half_rows>
    ```
  }];
  let arguments = (ins Tile_Frag:$fragment, UnitAttr:$rows);
  let results = (outs Tile_Frag:$even, Tile_Frag:$odd);
  let assemblyFormat = [{
    (`rows` $rows^):(`columns`)? $fragment attr-dict
    `:` type($fragment) `->` type($even) `,` type($odd)
  }];
  let hasVerifier = 1;
}

def Tile_PinOp : Tile_Op<"pin"> {
  let summary = "Keeps the work that makes a value above this point";
  let description = [{
    A wait for wgmma names no registers, so ptxas is free to move arithmetic
    that should overlap the multiply below the wait (it moved 63 of 66 exp2 of
    a softmax). This op hangs a never-taken side effect on the value: what it
    is made from is computed first. Pin a value that depends on all of the work
    and is not negative, such as the row sums of the probabilities.

    ```mlir
    %sum = tile.row_reduce add %p partial : !s -> !rows
    tile.pin %sum : !rows
    %o = tile.wgmma_wait %o1 : !acc -> !o
    ```
  }];
  let arguments = (ins Tile_Frag:$fragment);
  let assemblyFormat = "$fragment attr-dict `:` type($fragment)";
  let hasVerifier = 1;
}

def Tile_AnyOp : Tile_Op<"any", [Pure]> {
  let summary = "Whether a row of the warp has a value other than zero";
  let description = [{
    One vote of the warp, for work that most steps can leave out. The result
    is the same in all lanes, and may differ between warps.

    ```mlir
    %moved = tile.any %shift : !tile.frag<64xf32, rows>
    scf.if %moved { ... }
    ```
  }];
  let arguments = (ins Tile_Frag:$fragment);
  let results = (outs I1:$result);
  let assemblyFormat = "$fragment attr-dict `:` type($fragment)";
  let hasVerifier = 1;
}

#endif // LLMC_TILE_FRAGMENT_OPS_TD
