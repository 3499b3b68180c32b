// Rings, TMA and shared-memory tiles.
#ifndef LLMC_TILE_RING_OPS_TD
#define LLMC_TILE_RING_OPS_TD

include "dialects/tile/TileBase.td"

def Tile_RingOp : Tile_Op<"ring", [HasParent<"KernelOp">]> {
  let summary = "Makes a ring of shared-memory stages";
  let description = [{
    Storage and barriers are the passes' business: `tile-assign-stage-phase`
    fills the arrive counts, `tile-allocate-shared-memory` the offsets.

    ```mlir
    %ab = tile.ring : !tile.ring<4, !tile.smem<128x64xbf16, swizzle = 128>,
                                    !tile.smem<256x64xbf16, swizzle = 128>>
    ```
  }];
  let arguments = (ins OptionalAttr<I32Attr>:$full_arrivals,
                       OptionalAttr<I32Attr>:$empty_arrivals,
                       OptionalAttr<I32Attr>:$offset);
  let results = (outs Tile_Ring:$ring);
  let assemblyFormat = "attr-dict `:` type($ring)";
}

def Tile_ProduceOp : Tile_Op<"produce", [AttrSizedOperandSegments,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Fills the next stage of a ring";
  let description = [{
    Waits until the stage is free, arms its full barrier with the bytes of the
    TMA loads in the body, and issues them. The block arguments are the tiles
    of the stage, one per slot.

    A kernel under programmatic dependent launch may split the filling, so
    that weights travel while the predecessor still runs: `begin` waits, arms
    all bytes and issues its loads; after `tile.pdl_wait`, `resume` goes over
    the same stages in the same order and issues the rest. Between the two no
    more stages may be begun than the ring has.

    ```mlir
    tile.produce %ab : !ring as (%sa, %sb) {
      tile.tma_load %a[%m, %k] -> %sa : ...
      tile.tma_load %b[%n, %k] -> %sb : ...
    }
    tile.produce begin %ab : !ring as (%sa, %sb) { ... }
    ```
    `stage`, `phase` and `bytes` are filled by `tile-assign-stage-phase`.

    In a kernel without roles all threads fill the stage with
    `tile.copy_async`, which makes one group of copies, and nobody else uses
    it: whether they must meet before, as some may still read what the stage
    held (`meet`), is filled by `tile-assign-copy-groups`.
  }];
  let arguments = (ins Tile_Ring:$ring, Optional<I32>:$stage,
                       Optional<I32>:$phase,
                       DefaultValuedAttr<Tile_ProducePartAttr,
                                         "ProducePart::Whole">:$part,
                       OptionalAttr<I32Attr>:$bytes, UnitAttr:$meet);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    (`part` `(` $part^ `)`)? $ring (`stage` `(` $stage^ `,` $phase `)`)?
    attr-dict `:` type($ring) custom<SlotRegion>($body, ref(type($ring)))
  }];
  let hasVerifier = 1;
}

def Tile_ConsumeOp : Tile_Op<"consume", [
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Uses the next stage of a ring";
  let description = [{
    Waits until the stage is full, runs the body, then releases stages until
    only `keep` newest ones are still held. With `keep(1)` a stage is given
    back one turn late, when the multiply that reads it is known to be done
    (`wgmma_wait {pending = 1}`). A `tile.release` after the loop gives back
    the rest. Same as `tile.acquire`, the body, `tile.release`.

    ```mlir
    %c1 = tile.consume %ab keep(1) : !ring as (%sa, %sb)
        -> (!tile.acc<64x256xf32>) { ... tile.yield %c : !tile.acc<64x256xf32> }
    ```
  }];
  let arguments = (ins Tile_Ring:$ring,
                       DefaultValuedAttr<I32Attr, "0">:$keep);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $ring (`keep` `(` $keep^ `)`)? attr-dict `:` type($ring)
    custom<SlotRegionResults>($body, type($results), ref(type($ring)))
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_AcquireOp : Tile_Op<"acquire", [AttrSizedOperandSegments]> {
  let summary = "Waits for the next full stage and gives its tiles";
  let description = [{
    The unbracketed form of `tile.consume`, for loops that hold stages of two
    rings at once (attention). Stages are released in the order acquired.

    ```mlir
    %k = tile.acquire %keys : !ring -> !tile.smem<128x128xbf16, swizzle = 128>
    ```
    In a kernel without roles, `pending` is how many groups of copies may still
    be on their way when the stage is here; none: it is here already. It is
    filled by `tile-assign-copy-groups`.
  }];
  let arguments = (ins Tile_Ring:$ring, Optional<I32>:$stage,
                       Optional<I32>:$phase, OptionalAttr<I32Attr>:$pending);
  let results = (outs Variadic<Tile_Smem>:$tiles);
  let assemblyFormat = [{
    $ring (`stage` `(` $stage^ `,` $phase `)`)? attr-dict
    `:` type($ring) `->` type($tiles)
  }];
  let hasVerifier = 1;
}

def Tile_ReleaseOp : Tile_Op<"release"> {
  let summary = "Gives stages back to the producer";
  let description = [{
    Releases the oldest held stages until `keep` are left. After
    `tile-assign-stage-phase` it names the one stage it releases.

    ```mlir
    tile.release %keys : !ring
    tile.release %keys keep(1) : !ring
    ```
  }];
  let arguments = (ins Tile_Ring:$ring, Optional<I32>:$stage,
                       DefaultValuedAttr<I32Attr, "0">:$keep);
  let assemblyFormat = [{
    $ring (`keep` `(` $keep^ `)`)? (`stage` `(` $stage^ `)`)? attr-dict
    `:` type($ring)
  }];
}

def Tile_TmaLoadOp : Tile_Op<"tma_load", [HasParent<"ProduceOp">]> {
  let summary = "Copies a tile from global to shared memory through TMA";
  let description = [{
    Coordinates are element indexes, outermost first, like the shape of the
    map. A tile larger than the box takes several copies. What lies outside
    the tensor arrives as zero.

    ```mlir
    tile.tma_load %a[%m, %k] -> %sa cache(evict_first)
      : !tile.tensor_map<128x64xbf16, swizzle = 128>
      -> !tile.smem<128x64xbf16, swizzle = 128>
    ```
  }];
  let arguments = (ins Tile_TensorMap:$map, Variadic<I32>:$coordinates,
                       Tile_Smem:$tile,
                       DefaultValuedAttr<Tile_CacheAttr,
                                         "Cache::Normal">:$cache);
  let assemblyFormat = [{
    $map `[` $coordinates `]` `->` $tile (`cache` `(` $cache^ `)`)? attr-dict
    `:` type($map) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def Tile_CopyAsyncOp : Tile_Op<"copy_async", [HasParent<"ProduceOp">]> {
  let summary = "Copies a tile from global to shared memory (cp.async)";
  let description = [{
    The portable path (sm_80 and later), in kernels without roles: all threads
    of the block copy, 16 bytes at a time. The memory is a row-major matrix of
    `columns` columns, of which the rows below `rows` exist. What lies outside
    arrives as zero, and is not read.

    ```mlir
    tile.copy_async %w[%n, %k] of(%rows, 4096) -> %sw
      : !tile.ptr<bf16, constant> -> !tile.smem<64x128xbf16, swizzle = 128>
    ```
  }];
  let arguments = (ins Tile_Ptr:$memory, I32:$row, I32:$column, I32:$rows,
                       I32Attr:$columns, Tile_Smem:$tile);
  let assemblyFormat = [{
    $memory `[` $row `,` $column `]` `of` `(` $rows `,` $columns `)` `->` $tile
    attr-dict `:` type($memory) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def Tile_PrefetchOp : Tile_Op<"prefetch"> {
  let summary = "Brings a box of a tensor into the L2";
  let description = [{
    For operands of an epilogue: asked for when the tile begins, they are near
    when it ends. Run it in one thread (a role that is `elected`).

    ```mlir
    tile.prefetch %h[%m0, %n0] : !tile.tensor_map<128x64xf32, swizzle = 0>
    ```
  }];
  let arguments = (ins Tile_TensorMap:$map, Variadic<I32>:$coordinates);
  let assemblyFormat = "$map `[` $coordinates `]` attr-dict `:` type($map)";
  let hasVerifier = 1;
}

def Tile_SharedOp : Tile_Op<"shared"> {
  let summary = "A tile of shared memory for the whole kernel";
  let description = [{
    With `per_warpgroup` every warpgroup of the role that uses the tile has
    its own. `buffers` gives so many copies, taken in turn by `tile.store_tma`.

    ```mlir
    %scratch = tile.shared : !tile.smem<256xf32>
    %out = tile.shared per_warpgroup buffers(2)
      : !tile.smem<64x64xbf16, swizzle = 128>
    ```
  }];
  let arguments = (ins UnitAttr:$per_warpgroup,
                       DefaultValuedAttr<I32Attr, "1">:$buffers,
                       OptionalAttr<I32Attr>:$offset);
  let results = (outs Tile_Smem:$tile);
  let assemblyFormat = [{
    (`per_warpgroup` $per_warpgroup^)? (`buffers` `(` $buffers^ `)`)?
    attr-dict `:` type($tile)
  }];
}

def Tile_SliceOp : Tile_Op<"slice", [Pure]> {
  let summary = "Part of a shared tile at fixed offsets";
  let description = [{
    Row offsets of a swizzled tile are multiples of 8, column offsets of a
    whole slab.

    ```mlir
    %page = tile.slice %k[64, 0] : !tile.smem<128x128xbf16, swizzle = 128>
      -> !tile.smem<64x128xbf16, swizzle = 128, slab_rows = 128>
    ```
  }];
  let arguments = (ins Tile_Smem:$tile, DenseI64ArrayAttr:$offsets);
  let results = (outs Tile_Smem:$result);
  let assemblyFormat = [{
    $tile `` $offsets attr-dict `:` type($tile) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Bytes from the start of the tile to that of the slice.
    int64_t getByteOffset();
  }];
}

def Tile_WarpgroupSliceOp : Tile_Op<"warpgroup_slice", [Pure]> {
  let summary = "The rows of a shared tile that this warpgroup works on";
  let description = [{
    Warpgroup g of the role gets the rows that start at g * step. A step below
    64 makes slices overlap: a row partition that leaves part of the wgmma
    unused reads past its rows (the allocation is padded for the last one).
    `clamped` starts the last warpgroup early enough to end with the tile, so
    that any number of rows is covered; it shares rows with the one before it.

    ```mlir
    %mine = tile.warpgroup_slice %sa step(64)
      : !tile.smem<128x64xbf16, swizzle = 128>
      -> !tile.smem<64x64xbf16, swizzle = 128, slab_rows = 128>
    ```
  }];
  let arguments = (ins Tile_Smem:$tile, I32Attr:$step, UnitAttr:$clamped);
  let results = (outs Tile_Smem:$result);
  let assemblyFormat = [{
    $tile `step` `(` $step `)` (`clamped` $clamped^)? attr-dict `:` type($tile) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ProxyFenceOp : Tile_Op<"proxy_fence"> {
  let summary = "Makes ordinary shared-memory writes visible to TMA and wgmma";
  let description = [{
    Needed, followed by a barrier, between `tile.store` to shared memory and a
    wgmma or TMA store that reads it.

    ```mlir
    tile.proxy_fence
    ```
  }];
  let assemblyFormat = "attr-dict";
}

#endif // LLMC_TILE_RING_OPS_TD
