// Passes of the phase `tile`, in the order of the pipeline `tile-to-nvvm`.
#ifndef LLMC_PASSES_TILE_TD
#define LLMC_PASSES_TILE_TD

include "mlir/Pass/PassBase.td"

def TileStripHopper : Pass<"tile-strip-hopper"> {
  let summary = "Removes what GPUs before sm_90 neither have nor need";
  let description = [{
    Programmatic dependent launch: without it a launch starts when the one
    before it has ended, so there is nothing to wait for. Proxy fences: without
    TMA and wgmma all accesses to shared memory are ordinary ones.

    ```mlir
    tile.kernel @k(...) threads(256) pdl { tile.pdl_wait ... }
    // becomes
    tile.kernel @k(...) threads(256) { ... }
    ```
  }];
}

def TilePeelFirstStep : Pass<"tile-peel-first-step"> {
  let summary = "Takes the first turn out of loops that start from zero_acc";
  let description = [{
    Whether a wgmma adds to its accumulator or overwrites it is an immediate of
    the instruction, so the first multiply on a fresh accumulator must be its
    own instruction. This pass puts a copy of the first turn before each
    `scf.for` that carries a `tile.zero_acc`; the copy multiplies into the
    `zero_acc` itself, the loop goes on with its result.

    Precondition: such a loop runs at least once.

    ```mlir
    %s = scf.for %k = %c0 to %n step %c1 iter_args(%c = %zero) -> (!acc) : i32 {
      %c1 = tile.wgmma %a, %b, %c ...
      scf.yield %c1 : !acc
    }
    // becomes
    %c1 = tile.wgmma %a, %b, %zero ...
    %s = scf.for %k = %c0 + %c1 to %n step %c1 iter_args(%c = %c1) ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileVerifyProtocol : Pass<"tile-verify-protocol"> {
  let summary = "Runs the roles of a kernel against each other on the CPU";
  let description = [{
    Checks what no single op can see, before anything is lowered:

    * each ring has one producing role and at least one consuming role, and
      every filling of a stage brings the same bytes;
    * in straight order: no stage is released while a multiply that reads it
      may be in flight, none is used after its release, none is left held at
      the end of a role;
    * the roles, interpreted with every scalar argument and loaded integer equal
      to a probe, make the same number of fillings and uses of each ring and
      reach their ends over the turns of the rings: no deadlock. Rings only
      count upwards, so one order of execution stands for all. Several probes
      are tried; one that makes a role longer than `max-events` tells nothing.
    * a kernel with `pdl` waits in every role that reads or writes memory which
      is not constant.

    The IR is not changed.
  }];
  let options = [
    ListOption<"probes", "probes", "int64_t",
               "values of scalar arguments and loaded integers (9, 200)">,
    Option<"maxEvents", "max-events", "int64_t", "20000",
           "ring events to follow per role">];
}

def TileAssignStagePhase : Pass<"tile-assign-stage-phase"> {
  let summary = "Threads the stage and phase of each ring through the loops";
  let description = [{
    Expands `tile.consume` to `tile.acquire`, its body and `tile.release`, then
    gives each ring op its stage, and waits their phase. Both are carried
    through `scf.for` and `scf.if` as i32 values; a producer starts with the
    phase flipped, so that its first turn does not wait. Held stages are
    carried as values too, which makes a late release free. Rings get their
    arrive counts and `tile.produce` its bytes.

    Preconditions: loops hold as many stages after a turn as before it (run
    `tile-peel-first-step` first); no ring op lies inside other region ops.

    ```mlir
    scf.for %k = ... {
      tile.produce %ab : !ring as (%a) {...}
    }
    // becomes
    scf.for %k = ... iter_args(%s = %c0, %p = %c1) -> (i32, i32) : i32 {
      tile.produce %ab stage(%s, %p) {bytes = 16384 : i32} : !ring as (%a) {...}
      %s1, %p1 = ... // next stage; the phase flips where the ring wraps
      scf.yield %s1, %p1
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def TileAssignCopyGroups : Pass<"tile-assign-copy-groups"> {
  let summary = "Says what a block that fills its own rings waits for";
  let description = [{
    For kernels without roles (cp.async): every `tile.produce` makes one group
    of copies, in the order in which the block comes to them. Follows the
    groups and the stages of all rings through the kernel, in numbers that do
    not depend on its arguments, and sets

    * on `tile.acquire`, `pending`: how many groups may still be on their way
      when its stage is here (the lowering waits, then all threads meet); none
      where an earlier wait was for a later group;
    * on `tile.produce`, `meet`: that threads may still read what the stage
      held, so that all meet before it is filled anew. Where an acquire lies
      between the release and the filling, as in a loop that begins with it,
      this costs nothing.

    Refused: a filling without a free stage, an acquire of what nobody filled,
    and loops after whose turn other fillings are on their way than before.

    Precondition: stages are assigned.

    ```mlir
    tile.produce %r stage(%s, %p) : !ring as (%t) { tile.copy_async ... }
    %t = tile.acquire %r stage(%s1, %p1) : !ring -> !tile
    // becomes
    tile.produce %r stage(%s, %p) {meet} : !ring as (%t) { ... }
    %t = tile.acquire %r stage(%s1, %p1) {pending = 1 : i32} : !ring -> !tile
    ```
  }];
}

def TileAllocateSharedMemory : Pass<"tile-allocate-shared-memory"> {
  let summary = "Chooses the offset of everything in shared memory";
  let description = [{
    Rings first, then shared tiles (swizzled ones at multiples of 1024 bytes),
    then the scratch of reductions. A ring's barriers lie behind its stages.
    Where a warpgroup slice reads past its tile the end is padded. The sum goes
    to the kernel as `shared_memory` and must fit in `max-bytes`, those of a block
    of the GPU; the error lists what takes how much. The rings of a kernel
    without roles have no barriers.

    ```mlir
    %ab = tile.ring : !tile.ring<4, ...>
    // becomes
    %ab = tile.ring {offset = 0 : i32} : !tile.ring<4, ...>
    ```
  }];
  let options = [Option<"maxBytes", "max-bytes", "int64_t", "232448",
                        "shared memory of a block">];
}

def ConvertTileToNVVM : Pass<"convert-tile-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "Lowers tile kernels to nvvm, LLVM and scf";
  let description = [{
    Each `tile.kernel` becomes a `gpu.module` with one `llvm.func`. Roles become
    one chain of branches on the warp index (taken through a shuffle, so that
    it is warp-uniform), with setmaxnreg where the budget differs from what the
    launch gives; rings become mbarriers; fragments become LLVM structs.

    Traps of the hardware and of LLVM that this pass takes care of: TMA
    descriptors are `byval`, `grid_constant` and 64-byte aligned (otherwise a
    stack copy, or a fault at run time); `maxntid` is always set (otherwise
    setmaxnreg is ignored); remote arrives keep CTA scope (otherwise a memory
    barrier per stage); only `constant` pointers give non-coherent loads;
    barriers are initialised by one thread, fenced, then met by all.

    Preconditions: stages and offsets are assigned. Scalar ops and `scf` are
    left for the ordinary conversions of the pipeline.

    ```mlir
    tile.kernel @k(%p: !tile.ptr<f32>) threads(128) { ... }
    // becomes
    gpu.module @k attributes {tile.threads = 128 : i32, ...} {
      llvm.func @k(%p: !llvm.ptr<1>) attributes {nvvm.kernel, ...} { ... }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect"];
}

def TileExpandMath : Pass<"tile-expand-math"> {
  let summary = "Writes f32 functions of math in instructions of the GPU";
  let description = [{
    NVPTX has no library to call. exp, exp2, log, log2, powf, tanh and rsqrt
    become one approximate instruction (relative error below 2^-21) and
    arithmetic around it; sin and cos are reduced in f64 first, so that large
    positions keep their phase; erf is a polynomial. Other types are left.

    ```mlir
    %y = math.exp %x : f32
    // becomes
    %t = arith.mulf %x, %log2e : f32
    %y = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%t) : (f32) -> f32
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

#endif // LLMC_PASSES_TILE_TD
