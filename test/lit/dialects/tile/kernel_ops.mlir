// RUN: llmc-opt %s | llmc-opt | FileCheck %s

// Tests that a kernel without roles keeps its options.
// CHECK-LABEL: tile.kernel @plain(
// CHECK-SAME: !tile.ptr<f32>, %{{.*}}: !tile.ptr<bf16, constant>, %{{.*}}: i32) threads(256) min_blocks(2) pdl {
tile.kernel @plain(%x: !tile.ptr<f32>, %w: !tile.ptr<bf16, constant>, %n: i32)
    threads(256) min_blocks(2) pdl {
  // CHECK: %[[X:.*]] = tile.program_id x
  %x_id = tile.program_id x
  // CHECK: %[[N:.*]] = tile.num_programs y
  %count = tile.num_programs y
  // CHECK: tile.raster %[[X]] of(%{{.*}}, %[[N]]) group(8)
  %row, %column = tile.raster %x_id of (%n, %count) group(8)
  // CHECK: tile.pdl_wait
  tile.pdl_wait
  // CHECK: tile.pdl_launch
  tile.pdl_launch
  // CHECK: tile.yield %{{.*}} : i32
  %last = tile.for_each %x_id to %n init(%n : i32) -> (i32) {
  ^bb0(%i: i32, %carried: i32):
    tile.yield %i : i32
  }
}

// Tests that roles keep warps, registers and election.
// CHECK-LABEL: tile.kernel @roles
tile.kernel @roles() threads(384) {
  // CHECK: tile.role @load warps(1) regs(40) elected {
  tile.role @load warps(1) regs(40) elected {
  }
  // CHECK: tile.role @math warps(8) regs(232) {
  tile.role @math warps(8) regs(232) {
  }
}

// Tests that a warp beside warpgroups takes one warp where no role has a
// register budget.
// CHECK-LABEL: tile.kernel @unbudgeted
tile.kernel @unbudgeted() threads(160) {
  tile.role @math warps(4) {
  }
  tile.role @load warps(1) elected {
  }
}

// Tests that a cluster and the rank in it are kept.
// CHECK-LABEL: tile.kernel @cluster() threads(128) min_blocks(1) cluster(2) pdl {
tile.kernel @cluster() threads(128) min_blocks(1) cluster(2) pdl {
  // CHECK: tile.cluster_rank
  %r = tile.cluster_rank
}
