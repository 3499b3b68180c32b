// RUN: llmc-opt %s | llmc-opt | FileCheck %s

// Tests that conversions to and from 8-bit floats survive a round trip.
// CHECK-LABEL: tile.kernel @convert
tile.kernel @convert(%x: f32) threads(32) {
  %v = vector.broadcast %x : f32 to vector<4xf32>
  // CHECK: tile.narrow %{{.*}} : f32 -> f8E4M3FN
  %a = tile.narrow %x : f32 -> f8E4M3FN
  // CHECK: tile.narrow %{{.*}} : vector<4xf32> -> vector<4xf8E5M2>
  %b = tile.narrow %v : vector<4xf32> -> vector<4xf8E5M2>
  // CHECK: tile.widen %{{.*}} : f8E4M3FN -> f32
  %c = tile.widen %a : f8E4M3FN -> f32
  // CHECK: tile.widen %{{.*}} : vector<4xf8E5M2> -> vector<4xf32>
  %d = tile.widen %b : vector<4xf8E5M2> -> vector<4xf32>
}
