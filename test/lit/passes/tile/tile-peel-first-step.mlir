// RUN: llmc-opt %s --tile-peel-first-step | FileCheck %s

!a = !tile.smem<64x64xbf16, swizzle = 128>
!acc = !tile.acc<64x64xf32>

// Tests that the first turn multiplies into zero_acc and the loop goes on with
// its result, one step later.
// CHECK-LABEL: tile.kernel @gemm
// CHECK-DAG: %[[ZERO:.*]] = tile.zero_acc
// CHECK-DAG: %[[LOWER:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[STEP:.*]] = arith.constant 1 : i32
// CHECK: %[[FIRST:.*]] = tile.wgmma %{{.*}}, %{{.*}}, %[[ZERO]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[LOWER]], %[[STEP]]
// CHECK: scf.for %{{.*}} = %[[NEXT]] to %{{.*}} step %[[STEP]] iter_args(%[[C:.*]] = %[[FIRST]])
// CHECK-NEXT: tile.wgmma %{{.*}}, %{{.*}}, %[[C]]
tile.kernel @gemm(%n: i32) threads(128) {
  %a = tile.shared : !a
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %zero = tile.zero_acc : !acc
  %sum = scf.for %k = %lower to %n step %step iter_args(%c = %zero) -> (!acc) : i32 {
    %next = tile.wgmma %a, %a, %c : !a, !a, !acc -> !acc
    scf.yield %next : !acc
  }
}

// Tests that a loop that carries settled values is left alone.
// CHECK-LABEL: tile.kernel @settled
// CHECK-NOT: tile.wgmma
// CHECK: scf.for
// CHECK: tile.wgmma
tile.kernel @settled(%n: i32, %f: f32) threads(128) {
  %a = tile.shared : !a
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %zero = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  %sum = scf.for %k = %lower to %n step %step iter_args(%c = %zero) -> (!tile.frag<64x64xf32>) : i32 {
    %next = tile.wgmma %a, %a, %c : !a, !a, !tile.frag<64x64xf32> -> !acc
    %done = tile.wgmma_wait %next : !acc -> !tile.frag<64x64xf32>
    scf.yield %done : !tile.frag<64x64xf32>
  }
}
