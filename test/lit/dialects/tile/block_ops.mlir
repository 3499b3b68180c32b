// RUN: llmc-opt %s | llmc-opt | FileCheck %s

// CHECK-LABEL: tile.kernel @row
tile.kernel @row(%x: !tile.ptr<f32>, %n: i32, %count: !tile.ptr<i32>, %far: i64) threads(256) {
  %zero = arith.constant 0 : i32
  %f0 = arith.constant 0.0 : f32
  // CHECK: tile.thread_index
  %t = tile.thread_index
  // CHECK: tile.warp_index
  %w = tile.warp_index
  // CHECK: tile.warpgroup_index
  %g = tile.warpgroup_index
  // CHECK: tile.uniform %{{.*}} : i32
  %u = tile.uniform %w : i32
  %in = arith.cmpi slt, %t, %n : i32
  // CHECK: tile.for_each %{{.*}} to %{{.*}} vector(4) init(%{{.*}} : f32) -> (f32) {
  %s = tile.for_each %zero to %n vector(4) init(%f0 : f32) -> (f32) {
  ^bb0(%i: i32, %p: f32):
    // CHECK: tile.load %{{.*}}[%{{.*}}] : !tile.ptr<f32> -> vector<4xf32>
    %v = tile.load %x[%i] : !tile.ptr<f32> -> vector<4xf32>
    tile.yield %p : f32
  }
  // CHECK: tile.for_each %{{.*}} to %{{.*}} scope(warp) {
  tile.for_each %zero to %n scope(warp) {
  ^bb0(%i: i32):
    tile.yield
  }
  // CHECK: tile.reduce add %{{.*}} : f32 -> f32
  %sum = tile.reduce add %s : f32 -> f32
  // CHECK: tile.reduce argmax %{{.*}}, %{{.*}} scope(warp) : f32, i32 -> f32, i32
  %v, %i = tile.reduce argmax %s, %t scope(warp) : f32, i32 -> f32, i32
  // CHECK: tile.barrier scope(warpgroup)
  tile.barrier scope(warpgroup)
  // CHECK: tile.load %{{.*}}[%{{.*}} : i64] if %{{.*}} cache(evict_first) : !tile.ptr<f32> -> f32
  %y = tile.load %x[%far : i64] if %in cache(evict_first) : !tile.ptr<f32> -> f32
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}] if %{{.*}} : f32, !tile.ptr<f32>
  tile.store %y, %x[%t] if %in : f32, !tile.ptr<f32>
  // CHECK: tile.same_address %{{.*}}, %{{.*}} : <i32>, <i32>
  %same = tile.same_address %count, %count : !tile.ptr<i32>, !tile.ptr<i32>
  // CHECK: tile.atomic add %{{.*}}, %{{.*}}[%{{.*}} : i32] : i32, <i32> -> i32
  %old = tile.atomic add %t, %count[%zero : i32] : i32, !tile.ptr<i32> -> i32
  // CHECK: tile.fence
  tile.fence
}
