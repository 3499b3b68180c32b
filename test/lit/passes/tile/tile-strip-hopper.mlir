// RUN: llmc-opt %s --tile-strip-hopper | FileCheck %s

// Tests that a kernel keeps its work and nothing that older GPUs lack.
// CHECK-LABEL: tile.kernel @k
// CHECK-SAME: threads(128) {
// CHECK-NOT: tile.pdl
// CHECK-NOT: tile.proxy_fence
// CHECK: tile.store
tile.kernel @k(%y: !tile.ptr<f32>, %f: f32) threads(128) pdl {
  tile.pdl_launch
  tile.pdl_wait
  tile.proxy_fence
  %t = tile.thread_index
  tile.store %f, %y[%t] : f32, !tile.ptr<f32>
}
