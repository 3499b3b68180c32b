// RUN: llmc-opt %s -split-input-file --convert-tile-to-nvvm | FileCheck %s

// Tests what a kernel needs to be launched and assembled: descriptors in
// parameter space, the block size, the attributes for the launcher.
// CHECK-LABEL: gpu.module @plain attributes {tile.pdl, tile.shared_memory = 0 : i32, tile.threads = 128 : i32}
// CHECK: llvm.mlir.global external @shared_memory() {addr_space = 3 : i32, alignment = 1024 : i64}
// CHECK: llvm.func @plain(%{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}, %{{.*}}: !llvm.ptr<1>, %{{.*}}: i32)
// CHECK-SAME: nvvm.kernel, nvvm.maxntid = array<i32: 128>
tile.kernel @plain(%a: !tile.tensor_map<64x64xbf16, swizzle = 128>, %x: !tile.ptr<f32>, %i: i32)
    threads(128) pdl shared_memory(0) {
  // CHECK: nvvm.griddepcontrol wait
  tile.pdl_wait
  // CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
  %f = arith.constant dense<0.0> : vector<4xf32>
  tile.store %f, %x[%i] : vector<4xf32>, !tile.ptr<f32>
}

// -----

// Tests that only constant memory is read through the non-coherent path.
// CHECK-LABEL: llvm.func @loads
tile.kernel @loads(%w: !tile.ptr<f32, constant>, %x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %i: i32) threads(32) shared_memory(0) {
  // CHECK: llvm.load %{{.*}} invariant {alignment = 4 : i64}
  %a = tile.load %w[%i] : !tile.ptr<f32, constant> -> f32
  // CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> f32
  %b = tile.load %x[%i] : !tile.ptr<f32> -> f32
  %c = arith.addf %a, %b : f32
  tile.store %c, %y[%i] : f32, !tile.ptr<f32>
}

// -----

// Tests the dispatch: a chain on the warp index taken through a shuffle,
// register budgets by whole warpgroups, one elected thread.
// CHECK-LABEL: llvm.func @roles
// CHECK: %[[WARP:.*]] = nvvm.shfl.sync idx
// CHECK: %[[LOAD:.*]] = arith.cmpi ult, %[[WARP]], %c4
// CHECK: scf.if %[[LOAD]] {
// CHECK: nvvm.setmaxregister decrease 40
// CHECK: arith.cmpi ult, %[[WARP]], %c1
// CHECK: nvvm.elect.sync
// CHECK: } else {
// CHECK: nvvm.setmaxregister increase 232
tile.kernel @roles() threads(384) shared_memory(0) {
  tile.role @load warps(1) regs(40) elected {
    tile.pdl_launch
  }
  tile.role @math warps(8) regs(232) {
    // CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
    tile.barrier
  }
}

// -----

// Tests the waits and arrivals of a ring with stages assigned.
!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!a = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2, !a>
// CHECK-LABEL: llvm.func @ring
// CHECK-COUNT-4: nvvm.mbarrier.init
// CHECK: nvvm.fence.mbarrier.init
tile.kernel @ring(%m: !map, %s: i32, %p: i32) threads(160) shared_memory(16416) {
  %ring = tile.ring {empty_arrivals = 4 : i32, full_arrivals = 1 : i32, offset = 0 : i32} : !ring
  tile.role @math warps(4) {
    // CHECK: nvvm.mbarrier.try_wait.parity
    %t = tile.acquire %ring stage(%s, %p) : !ring -> !a
    // CHECK: nvvm.mbarrier.arrive %{{.*}} : !llvm.ptr<3> -> i64
    tile.release %ring stage(%s) : !ring
  }
  tile.role @load warps(1) elected {
    // CHECK: nvvm.mbarrier.try_wait.parity
    // CHECK: nvvm.mbarrier.arrive.expect_tx
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}} box[
    tile.produce %ring stage(%s, %p) {bytes = 8192 : i32} : !ring as (%t) {
      tile.tma_load %m[%s, %p] -> %t : !map -> !a
    }
  }
}

// -----

// Tests that the first multiply overwrites, that k-steps advance by 32 bytes,
// and that A from registers goes through inline assembly.
!a = !tile.smem<64x64xbf16, swizzle = 128>
!acc = !tile.acc<64x64xf32>
// CHECK-LABEL: llvm.func @wgmma
tile.kernel @wgmma(%y: !tile.ptr<f32>) threads(128) shared_memory(8192) {
  %a = tile.shared {offset = 0 : i32} : !a
  %z = tile.zero_acc : !acc
  // CHECK: nvvm.wgmma.fence.aligned
  // CHECK: nvvm.wgmma.mma_async {{.*}}, <m = 64, n = 64, k = 16>, D{{ ?}}[<f32>, <zero>]
  // CHECK-COUNT-3: nvvm.wgmma.mma_async {{.*}}, <m = 64, n = 64, k = 16>, D{{ ?}}[<f32>, <one>]
  // CHECK: nvvm.wgmma.commit.group.sync.aligned
  %c = tile.wgmma %a, %a, %z : !a, !a, !acc -> !acc
  // CHECK: nvvm.wgmma.wait.group.sync.aligned 0
  %d = tile.wgmma_wait %c : !acc -> !tile.frag<64x64xf32>
  %p = tile.convert %d : !tile.frag<64x64xf32> -> !tile.frag<64x64xbf16, operand_a>
  // CHECK-COUNT-4: llvm.inline_asm has_side_effects {{.*}}wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
  %o = tile.wgmma %p, %a, %d transpose_b : !tile.frag<64x64xbf16, operand_a>, !a, !tile.frag<64x64xf32> -> !acc
  %e = tile.wgmma_wait %o : !acc -> !tile.frag<64x64xf32>
  // CHECK-COUNT-16: llvm.store %{{.*}} : vector<2xf32>, !llvm.ptr<1>
  tile.epilogue %e : !tile.frag<64x64xf32> {
  ^bb0(%v: vector<2xf32>, %row: i32, %col: i32):
    tile.store %v, %y[%col] : vector<2xf32>, !tile.ptr<f32>
  }
}

// -----

// Tests the sum over a cluster: what the other block needs goes to its shared
// memory, the cluster meets, each adds its own half.
// CHECK-LABEL: gpu.module @cluster attributes {tile.cluster = 2 : i32
// CHECK: llvm.func @cluster
// CHECK-SAME: nvvm.cluster_dim = array<i32: 2, 1, 1>
// CHECK: nvvm.cluster.arrive {aligned}
// CHECK: nvvm.cluster.wait {aligned}
// CHECK: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank
// CHECK: %[[OTHER:.*]] = arith.xori %[[RANK]]
// CHECK: nvvm.mapa %{{.*}}, %[[OTHER]] : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<7>
// CHECK: nvvm.cluster.arrive {aligned}
// CHECK: nvvm.cluster.wait {aligned}
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: arith.addf
tile.kernel @cluster(%f: f32) threads(128) cluster(2) shared_memory(2048) {
  %s = tile.fill %f : f32 -> !tile.frag<64x16xf32>
  %h = tile.cluster_reduce %s {offset = 0 : i32} : !tile.frag<64x16xf32> -> !tile.frag<64x8xf32>
}

// -----

// Tests a float32 tile: pairs by ordinary stores, then TMA; and the prefetch.
!wide = !tile.smem<64x32xf32, swizzle = 128>
!wide_map = !tile.tensor_map<64x32xf32, swizzle = 128>
// CHECK-LABEL: llvm.func @store_f32
// CHECK: nvvm.cp.async.bulk.wait_group 1 {read}
// CHECK-COUNT-8: llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<3>
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta
// CHECK: nvvm.cp.async.bulk.tensor.reduce {{.*}} {redKind = #nvvm.tma_redux_kind<add>}
// CHECK: nvvm.cp.async.bulk.tensor.prefetch
tile.kernel @store_f32(%d: !wide_map, %f: f32, %r: i32) threads(160) shared_memory(16384) {
  %out = tile.shared per_warpgroup buffers(2) {offset = 0 : i32} : !wide
  tile.role @math warps(4) {
    %s = tile.fill %f : f32 -> !tile.frag<64x64xf32>
    tile.store_tma %s, %out -> %d[%r, %r] : !tile.frag<64x64xf32>, !wide -> !wide_map
    tile.store_tma %s, %out -> %d[%r, %r] accumulate : !tile.frag<64x64xf32>, !wide -> !wide_map
  }
  tile.role @load warps(1) elected {
    tile.prefetch %d[%r, %r] : !wide_map
  }
}

// -----

// One lane's value for all of the warp; one vote of the warp on both rows of a thread.
// CHECK-LABEL: llvm.func @votes
tile.kernel @votes(%n: i32, %f: f32, %out: !tile.ptr<i32>) threads(128) attributes {shared_memory = 0 : i32} {
  // CHECK: nvvm.shfl.sync idx %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : i32 -> i32
  %u = tile.uniform %n : i32
  %rows = tile.fill %f : f32 -> !tile.frag<64xf32, rows>
  // CHECK: %[[A:.*]] = arith.cmpf une
  // CHECK: %[[B:.*]] = arith.cmpf une
  // CHECK: %[[ANY:.*]] = arith.ori %[[A]], %[[B]]
  // CHECK: nvvm.vote.sync any %{{.*}}, %[[ANY]] -> i1
  %some = tile.any %rows : !tile.frag<64xf32, rows>
  tile.store %u, %out[%u] if %some : i32, !tile.ptr<i32>
}

// -----

// NVPTX drops the ordering of an atomicrmw: fences stand for it, but for relaxed ones.
// CHECK-LABEL: llvm.func @arrive
tile.kernel @arrive(%one: i32, %counter: !tile.ptr<i32>) threads(128) attributes {shared_memory = 0 : i32} {
  // CHECK: llvm.fence syncscope("device") acq_rel
  // CHECK-NEXT: llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") monotonic
  // CHECK-NEXT: llvm.fence syncscope("device") acq_rel
  %before = tile.atomic add %one, %counter[%one : i32] : i32, !tile.ptr<i32> -> i32
  // CHECK-NOT: llvm.fence
  // CHECK: llvm.atomicrmw add
  // CHECK-NOT: llvm.fence
  %any = tile.atomic add relaxed %one, %counter[%one : i32] : i32, !tile.ptr<i32> -> i32
  // CHECK: llvm.return
}
