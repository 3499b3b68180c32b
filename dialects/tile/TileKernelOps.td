// The kernel, its roles and its place in the grid.
#ifndef LLMC_TILE_KERNEL_OPS_TD
#define LLMC_TILE_KERNEL_OPS_TD

include "dialects/tile/TileBase.td"

def Tile_KernelOp : Tile_Op<"kernel", [IsolatedFromAbove, Symbol,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "One GPU kernel";
  let description = [{
    Arguments are global pointers, TMA descriptors and scalars. The body is run
    by every thread of the block; roles, where there are any, come last and
    split the warps. `threads` is the block size (a multiple of 32), checked
    against the roles. `min_blocks` asks for so many blocks per SM and `pdl`
    says that the kernel is launched with programmatic dependent launch, so
    that it must wait before it touches what a predecessor reads or writes.
    `cluster(2)` launches the blocks in pairs that share their shared memory
    (`tile.cluster_rank`, `tile.cluster_reduce`). `shared_memory` (bytes) is
    filled by `tile-allocate-shared-memory`.

    ```mlir
    tile.kernel @copy(%src: !tile.ptr<f32>, %dst: !tile.ptr<f32>, %n: i32)
        threads(256) {
      tile.for_each %i = 0 to %n vector(4) ...
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I32Attr:$threads,
                       OptionalAttr<I32Attr>:$min_blocks,
                       OptionalAttr<I32Attr>:$cluster, UnitAttr:$pdl,
                       OptionalAttr<I32Attr>:$shared_memory);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Bytes of shared memory a block may use on sm_90.
    static constexpr int64_t kMaxSharedMemory = 232448;
  }];
}

def Tile_RoleOp : Tile_Op<"role", [HasParent<"KernelOp">,
    SingleBlockImplicitTerminator<"YieldOp">, NoRegionArguments]> {
  let summary = "What some warps of the block do";
  let description = [{
    Warps are dealt to roles in order. A role of whole warpgroups starts at a
    warpgroup; where any role names `regs`, every role is rounded up to whole
    warpgroups, because all four warps of one must change their register count
    together. `elected` runs the body in one thread (all a TMA producer needs).
    `regs` is a multiple of 8 and the sum over the block stays within 65,536.

    ```mlir
    tile.role @load warps(1) regs(40) elected { ... }
    tile.role @math warps(8) regs(232) { ... }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I32Attr:$warps,
                       OptionalAttr<I32Attr>:$regs, UnitAttr:$elected);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `warps` `(` $warps `)` (`regs` `(` $regs^ `)`)?
    (`elected` $elected^)? $body attr-dict
  }];
  let hasVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, ReturnLike, Terminator]> {
  let summary = "Ends a region of the dialect";
  let description = [{
    Hands the operands to the op around it.

    ```mlir
    tile.yield %x : f32
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$operands);
  let builders = [OpBuilder<(ins), [{
    build($_builder, $_state, ::mlir::ValueRange{});
  }]>];
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

def Tile_ProgramIdOp : Tile_Op<"program_id", [Pure]> {
  let summary = "Index of this block in the grid";
  let description = [{
    ```mlir
    %b = tile.program_id x
    ```
  }];
  let arguments = (ins Tile_AxisAttr:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Tile_ClusterRankOp : Tile_Op<"cluster_rank", [Pure]> {
  let summary = "Index of this block in its cluster";
  let description = [{
    Blocks of a cluster are neighbours along x.

    ```mlir
    %r = tile.cluster_rank
    ```
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Tile_NumProgramsOp : Tile_Op<"num_programs", [Pure]> {
  let summary = "Number of blocks in the grid";
  let description = [{
    ```mlir
    %n = tile.num_programs x
    ```
  }];
  let arguments = (ins Tile_AxisAttr:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Tile_RasterOp : Tile_Op<"raster", [Pure]> {
  let summary = "Tile coordinates of a work index, in grouped raster order";
  let description = [{
    Walks `group` rows of tiles down before it goes right, so that the tiles
    of one wave share operands in L2. A persistent kernel loops over work
    indexes from `tile.program_id` in steps of `tile.num_programs`.

    ```mlir
    %m, %n = tile.raster %t of (%rows, %columns) group(16)
    ```
  }];
  let arguments = (ins I32:$index, I32:$rows, I32:$columns, I32Attr:$group);
  let results = (outs I32:$row, I32:$column);
  let assemblyFormat = [{
    $index `of` `(` $rows `,` $columns `)` `group` `(` $group `)` attr-dict
  }];
  let hasVerifier = 1;
}

def Tile_PdlWaitOp : Tile_Op<"pdl_wait"> {
  let summary = "Waits until the kernels before this one are done";
  let description = [{
    Programmatic dependent launch: before this op a kernel may set up barriers
    and read `constant` memory; after it, all results of its predecessors are
    visible. Every role that touches other global memory executes it.

    ```mlir
    tile.pdl_wait
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_PdlLaunchOp : Tile_Op<"pdl_launch"> {
  let summary = "Lets the next kernel start its prologue";
  let description = [{
    Best as the first thing a producer does, with one block per SM. Says
    nothing about memory: the next kernel still waits for the end of this one.

    ```mlir
    tile.pdl_launch
    ```
  }];
  let assemblyFormat = "attr-dict";
}

#endif // LLMC_TILE_KERNEL_OPS_TD
