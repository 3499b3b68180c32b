// The portable path end to end: cp.async in a ring, ldmatrix, mma.sync; sm_80.
// RUN: llmc-opt %s --tile-to-nvvm="chip=sm_80 features=+ptx83 shared-memory=166912" | FileCheck %s

!a = !tile.smem<64x64xbf16, swizzle = 128>
!b = !tile.smem<32x96xbf16, swizzle = 64>
!plain = !tile.smem<16x24xbf16>
!ring = !tile.ring<2, !a>
!odd = !tile.ring<1, !b, !plain>

// Tests that a tile of 64 rows takes 4 copies of 128 threads, each a constant
// away from the first, that the end of the memory is a size of zero, and that
// the block waits for its group and then for itself.
// CHECK-LABEL: llvm.func @multiply
// CHECK-SAME: nvvm.kernel
// CHECK-NOT: mbarrier
// CHECK: %[[SIZE:.*]] = llvm.select %{{.*}}, %{{.*}}, %{{.*}} : i1, i32
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %[[SIZE]]
// CHECK-COUNT-3: nvvm.cp.async.shared.global
// CHECK-NOT: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: nvvm.barrier
// CHECK: nvvm.ldmatrix
// CHECK: nvvm.mma.sync
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: llvm.return
tile.kernel @multiply(%x: !tile.ptr<bf16>, %y: !tile.ptr<f32>, %n: i32, %f: f32) threads(128) pdl {
  %zero = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %ring = tile.ring : !ring
  tile.pdl_wait
  tile.produce %ring : !ring as (%t) {
    tile.copy_async %x[%n, %zero] of(%n, 4096) -> %t : !tile.ptr<bf16> -> !a
  }
  %t = tile.acquire %ring : !ring -> !a
  %a = tile.load_matrix %t : !a -> !tile.frag<64x64xbf16, operand_a>
  %c = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  %d = tile.mma [%a], %t, [%c] : [!tile.frag<64x64xbf16, operand_a>], !a, [!tile.frag<64x64xf32>] -> !tile.frag<64x64xf32>
  tile.release %ring : !ring
  tile.epilogue %d at(%zero, %zero) : !tile.frag<64x64xf32> {
  ^bb0(%v: vector<2xf32>, %r: i32, %col: i32):
    %i = arith.muli %r, %c64 : i32
    %at = arith.addi %i, %col : i32
    tile.store %v, %y[%at] : vector<2xf32>, !tile.ptr<f32>
  }
}

// Tests slabs of another width: 32 x 96 in slabs of 32 columns is 3 copies of
// whole slabs; 16 rows of 3 chunks without swizzle are dealt one by one, to
// some of the threads.
// CHECK-LABEL: llvm.func @odd
// CHECK-COUNT-3: nvvm.cp.async.shared.global
// CHECK: llvm.cond_br
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
tile.kernel @odd(%x: !tile.ptr<bf16>, %n: i32) threads(128) {
  %ring = tile.ring : !odd
  tile.produce %ring : !odd as (%t, %p) {
    tile.copy_async %x[%n, %n] of(%n, 96) -> %t : !tile.ptr<bf16> -> !b
    tile.copy_async %x[%n, %n] of(%n, 24) -> %p : !tile.ptr<bf16> -> !plain
  }
  %t, %p = tile.acquire %ring : !odd -> !b, !plain
  tile.release %ring : !odd
}
