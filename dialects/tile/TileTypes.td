// Types of the `tile` dialect.
#ifndef LLMC_TILE_TYPES_TD
#define LLMC_TILE_TYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "dialects/tile/TileDialect.td"
include "dialects/tile/TileEnums.td"

class Tile_Type<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<Tile_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

def Tile_Ptr : Tile_Type<"Ptr", "ptr"> {
  let summary = "Pointer to typed global memory";
  let description = [{
    Indexes count elements. `constant` promises that no kernel of the running
    step writes the memory (weights, tables): only such pointers may become
    non-coherent loads, because a predecessor under programmatic dependent
    launch is still writing when this kernel starts.

    ```mlir
    !tile.ptr<bf16>
    !tile.ptr<bf16, constant>
    ```
  }];
  let parameters = (ins "::mlir::Type":$elementType,
                        DefaultValuedParameter<"bool", "false">:$constant);
  let hasCustomAssemblyFormat = 1;
}

def Tile_TensorMap : Tile_Type<"TensorMap", "tensor_map"> {
  let summary = "TMA descriptor of a tensor in global memory";
  let description = [{
    The shape is that of the box one TMA instruction moves, outermost dimension
    first; the swizzle (0, 32, 64 or 128 bytes) is that of the shared tile.
    Rules of the hardware, all checked: rank at most 5, every box dimension at
    most 256, the innermost box dimension a multiple of 16 bytes and at most
    the swizzle span.

    ```mlir
    !tile.tensor_map<128x64xbf16, swizzle = 128>
    !tile.tensor_map<1x1x64x64xbf16, swizzle = 128>   // one page of one head
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType, "int64_t":$swizzle);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes that one box brings into shared memory (also where clipped).
    int64_t getBoxBytes() const;
  }];
}

def Tile_Smem : Tile_Type<"Smem", "smem"> {
  let summary = "Tile in shared memory";
  let description = [{
    Row-major. A swizzled tile is cut into column slabs as wide as the swizzle
    span (64 bf16 for 128 bytes); a slab holds `slab_rows` rows one after the
    other, and the 16-byte chunks of row r are exchanged by XOR with r mod 8
    (span 128). `slab_rows` is the row count of the tile unless the value is a
    slice of a taller one. A tile without swizzle is plain row-major.

    ```mlir
    !tile.smem<128x64xbf16, swizzle = 128>
    !tile.smem<64x128xbf16, swizzle = 128, slab_rows = 96>
    !tile.smem<256xf32>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType, "int64_t":$swizzle,
                        "int64_t":$slabRows);
  let builders = [
    TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape,
                     "::mlir::Type":$elementType,
                     CArg<"int64_t", "0">:$swizzle), [{
      return $_get($_ctxt, shape, elementType, swizzle,
                   shape.size() == 2 ? shape[0] : 0);
    }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getNumElements() const;
    int64_t getBytes() const;
    /// Bytes between column slabs of a swizzled tile.
    int64_t getSlabBytes() const { return getSlabRows() * getSwizzle(); }
    /// Columns of one slab (all columns where there is no swizzle).
    int64_t getSlabColumns() const;
    int64_t getElementBytes() const;
  }];
}

def Tile_Ring : Tile_Type<"Ring", "ring"> {
  let summary = "Ring of shared-memory stages between two roles";
  let description = [{
    Each stage holds one tile per slot, a full barrier (one arrival plus the
    bytes of its TMA loads) and an empty barrier (one arrival per consuming
    warp). None of these is visible to the author.

    ```mlir
    !tile.ring<4, !tile.smem<128x64xbf16, swizzle = 128>,
                  !tile.smem<256x64xbf16, swizzle = 128>>
    ```
  }];
  let parameters = (ins "int64_t":$stages,
                        ArrayRefParameter<"::llmc::tile::SmemType">:$slots);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes of one stage; each slot starts at a multiple of 1024.
    int64_t getStageBytes() const;
    int64_t getSlotOffset(unsigned slot) const;
  }];
}

def Tile_Acc : Tile_Type<"Acc", "acc"> {
  let summary = "Accumulator that wgmma may still be writing";
  let description = [{
    64 rows by N columns over the 128 threads of a warpgroup. The only way to
    read it is `tile.wgmma_wait`, which turns it into a `!tile.frag`.

    ```mlir
    !tile.acc<64x256xf32>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Tile_Frag : Tile_Type<"Frag", "frag"> {
  let summary = "Matrix fragment in registers, settled";
  let description = [{
    Layouts (w: warp of the warpgroup, l: lane):

    * `accumulator` (not printed): warp w owns rows 16w to 16w+15; a thread
      holds, for each 8 columns, (l/4, 2(l%4)), the column after it, and the
      same two of row l/4 + 8. 16 rows belong to one warp alone.
    * `half_rows`: only the rows l/4 of the above, 8 rows a warp; what
      `tile.deinterleave` along rows gives.
    * `operand_a`: the same elements packed as the 16-bit A operand of the
      next multiply; `tile.convert` makes it without a shuffle.
    * `rows`: one value per row (of the `accumulator` layout), equal in the
      four threads that share the row.

    ```mlir
    !tile.frag<64x256xf32>
    !tile.frag<64x128xbf16, operand_a>
    !tile.frag<64xf32, rows>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType,
                        "::llmc::tile::Layout":$layout);
  let builders = [
    TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape,
                     "::mlir::Type":$elementType), [{
      return $_get($_ctxt, shape, elementType, Layout::Accumulator);
    }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Elements one thread holds.
    int64_t getThreadElements() const;
  }];
}

#endif // LLMC_TILE_TYPES_TD
