// Ops of row and elementwise kernels: threads, memory, reductions.
#ifndef LLMC_TILE_BLOCK_OPS_TD
#define LLMC_TILE_BLOCK_OPS_TD

include "dialects/tile/TileBase.td"

def Tile_ThreadIndexOp : Tile_Op<"thread_index", [Pure]> {
  let summary = "Index of the thread in its scope (role, or block without roles)";
  let description = [{
    ```mlir
    %t = tile.thread_index
    ```
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_WarpgroupIndexOp : Tile_Op<"warpgroup_index", [Pure]> {
  let summary = "Index of the warpgroup in its role; uniform in the warp";
  let description = [{
    ```mlir
    %g = tile.warpgroup_index
    ```
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_WarpIndexOp : Tile_Op<"warp_index", [Pure]> {
  let summary = "Index of the warp in its role or block; uniform in the warp";
  let description = [{
    ```mlir
    %w = tile.warp_index
    ```
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_UniformOp : Tile_Op<"uniform", [Pure]> {
  let summary = "The first lane's value, so that ptxas knows all lanes to agree";
  let description = [{
    For bounds and indexes that are loaded: a loop whose bounds are not known
    to be uniform keeps its stages and matrix descriptors in ordinary
    registers, and each multiply waits for their copies. All lanes take part.

    ```mlir
    %pages = tile.uniform %loaded : i32
    ```
  }];
  let arguments = (ins I32:$value);
  let results = (outs I32:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Tile_ForEachOp : Tile_Op<"for_each", [
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Loop whose turns are dealt to the threads of a scope";
  let description = [{
    Element indexes from `lower` to `upper` go to threads in runs of `vector`
    neighbours (`upper - lower` is a multiple of it). Each thread carries its
    own values; combine them with `tile.reduce`. `scope` is the block (or
    role), a warpgroup or a warp.

    ```mlir
    %sum = tile.for_each %zero to %n vector(8) init(%f0 : f32) -> (f32) {
    ^bb0(%i: i32, %partial: f32):
      %x = tile.load %src[%i] : !tile.ptr<bf16> -> vector<8xbf16>
      ...
      tile.yield %next : f32
    }
    ```
  }];
  let arguments = (ins I32:$lower, I32:$upper, Variadic<AnyType>:$init,
                       DefaultValuedAttr<I32Attr, "1">:$vector,
                       DefaultValuedAttr<Tile_ScopeAttr, "Scope::Block">:$scope);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $lower `to` $upper (`vector` `(` $vector^ `)`)? (`scope` `(` $scope^ `)`)?
    (`init` `(` $init^ `:` type($init) `)`)?
    (`->` `(` type($results)^ `)`)? $body attr-dict
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_ReduceOp : Tile_Op<"reduce"> {
  let summary = "Combines one value of every thread; all threads get the result";
  let description = [{
    Shuffles inside warps, then shared memory and a barrier between them.
    `argmax` takes a value and an i32 index and gives both; of equal values
    the smaller index wins.

    ```mlir
    %sum = tile.reduce add %x : f32 -> f32
    %v, %i = tile.reduce argmax %x, %index : f32, i32 -> f32, i32
    %w = tile.reduce max %x scope(warp) : f32 -> f32
    ```
  }];
  let arguments = (ins Tile_ReduceKindAttr:$kind, Variadic<AnyType>:$values,
                       DefaultValuedAttr<Tile_ScopeAttr, "Scope::Block">:$scope,
                       OptionalAttr<I32Attr>:$offset);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = [{
    $kind $values (`scope` `(` $scope^ `)`)? attr-dict
    `:` type($values) `->` type($results)
  }];
  let hasVerifier = 1;
}

def Tile_BarrierOp : Tile_Op<"barrier"> {
  let summary = "Waits until all threads of a scope are here";
  let description = [{
    In a role, `block` and `role` both mean the role: roles never wait for
    each other except through rings.

    ```mlir
    tile.barrier
    tile.barrier scope(warpgroup)
    ```
  }];
  let arguments = (ins
    DefaultValuedAttr<Tile_ScopeAttr, "Scope::Block">:$scope);
  let assemblyFormat = "(`scope` `(` $scope^ `)`)? attr-dict";
}

def Tile_LoadOp : Tile_Op<"load", [AttrSizedOperandSegments]> {
  let summary = "Reads a scalar or vector";
  let description = [{
    One index (in elements) into global memory; one per dimension into shared
    memory, where the swizzle is applied. A vector is aligned to its own size.
    Where the condition is false the result is zero and nothing is read.

    ```mlir
    %x = tile.load %src[%i] : !tile.ptr<bf16> -> vector<8xbf16>
    %y = tile.load %src[%i] if %inside : !tile.ptr<f32> -> f32
    ```
  }];
  let arguments = (ins Tile_Memory:$memory, Variadic<Tile_Offset>:$indices,
                       Optional<I1>:$condition,
                       DefaultValuedAttr<Tile_CacheAttr,
                                         "Cache::Normal">:$cache);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $memory custom<Indices>($indices, type($indices)) (`if` $condition^)?
    (`cache` `(` $cache^ `)`)? attr-dict `:` type($memory) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store", [AttrSizedOperandSegments]> {
  let summary = "Writes a scalar or vector";
  let description = [{
    The mirror of `tile.load`.

    ```mlir
    tile.store %x, %dst[%i] : vector<8xbf16>, !tile.ptr<bf16>
    tile.store %y, %dst[%i] if %inside : f32, !tile.ptr<f32>
    ```
  }];
  let arguments = (ins AnyType:$value, Tile_Memory:$memory,
                       Variadic<Tile_Offset>:$indices, Optional<I1>:$condition);
  let assemblyFormat = [{
    $value `,` $memory custom<Indices>($indices, type($indices))
    (`if` $condition^)? attr-dict
    `:` type($value) `,` type($memory)
  }];
  let hasVerifier = 1;
}

def Tile_SameAddressOp : Tile_Op<"same_address", [Pure]> {
  let summary = "Whether two pointers point to the same place";
  let description = [{
    Whether a result lies on an operand is known when an engine is planned,
    after its kernels were made: a kernel that gains by it asks.

    ```mlir
    %in_place = tile.same_address %out, %residual : !tile.ptr<f32>, !tile.ptr<f32>
    ```
  }];
  let arguments = (ins Tile_Ptr:$lhs, Tile_Ptr:$rhs);
  let results = (outs I1:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
}

def Tile_AtomicOp : Tile_Op<"atomic"> {
  let summary = "Atomic update of global memory, device scope";
  let description = [{
    Acquire and release: what was written before it is visible to whoever sees
    the new value. Gives the old value.

    ```mlir
    %old = tile.atomic add %one, %counter[%t : i32] : i32, !tile.ptr<i32> -> i32
    ```
  }];
  let arguments = (ins Tile_AtomicKindAttr:$kind, AnyType:$value,
                       Tile_Ptr:$memory, Tile_Offset:$index,
                       UnitAttr:$relaxed);
  let results = (outs AnyType:$old);
  let assemblyFormat = [{
    $kind (`relaxed` $relaxed^)? $value `,` $memory `[` $index `:` type($index) `]` attr-dict
    `:` type($value) `,` type($memory) `->` type($old)
  }];
  let hasVerifier = 1;
}

def Tile_FenceOp : Tile_Op<"fence"> {
  let summary = "Orders global memory accesses of this thread for the device";
  let description = [{
    ```mlir
    tile.fence
    ```
  }];
  let assemblyFormat = "attr-dict";
}

#endif // LLMC_TILE_BLOCK_OPS_TD
