// RUN: llmc-opt %s | llmc-opt | FileCheck %s

!s = !tile.frag<64x128xf32>
!rows = !tile.frag<64xf32, rows>

// CHECK-LABEL: tile.kernel @softmax
tile.kernel @softmax(%f: f32, %r: i32, %y: !tile.ptr<bf16>) threads(128) {
  // CHECK: %[[S:.*]] = tile.fill %{{.*}} : f32 -> <64x128xf32>
  %s = tile.fill %f : f32 -> !s
  // CHECK: %[[M:.*]] = tile.row_reduce max %[[S]] : <64x128xf32> -> <64xf32, rows>
  %m = tile.row_reduce max %s : !s -> !rows
  // CHECK: tile.map %[[S]], %[[M]] at(%{{.*}}, %{{.*}}) : !tile.frag<64x128xf32>, !tile.frag<64xf32, rows> -> !tile.frag<64x128xf32> {
  %p = tile.map %s, %m at(%r, %r) : !s, !rows -> !s {
  ^bb0(%x: f32, %max: f32, %row: i32, %col: i32):
    %d = arith.subf %x, %max : f32
    tile.yield %d : f32
  }
  // CHECK: tile.row_reduce add %{{.*}} partial :
  %sum = tile.row_reduce add %p partial : !s -> !rows
  // CHECK: tile.pin %{{.*}} : <64xf32, rows>
  tile.pin %sum : !rows
  // CHECK: tile.any %{{.*}} : <64xf32, rows>
  %some = tile.any %sum : !rows
  // CHECK: tile.convert %{{.*}} : <64x128xf32> -> <64x128xbf16, operand_a>
  %a = tile.convert %p : !s -> !tile.frag<64x128xbf16, operand_a>
  // CHECK: tile.deinterleave columns %{{.*}} : <64x128xf32> -> <64x64xf32>, <64x64xf32>
  %g, %u = tile.deinterleave columns %p : !s -> !tile.frag<64x64xf32>, !tile.frag<64x64xf32>
  // CHECK: tile.deinterleave rows %{{.*}} : <64x128xf32> -> <32x128xf32, half_rows>, <32x128xf32, half_rows>
  %g8, %u8 = tile.deinterleave rows %p : !s -> !tile.frag<32x128xf32, half_rows>, !tile.frag<32x128xf32, half_rows>
  // CHECK: tile.epilogue %{{.*}} at(%{{.*}}, %{{.*}}) : !tile.frag<64x128xf32> {
  tile.epilogue %p at(%r, %r) : !s {
  ^bb0(%v: vector<2xf32>, %row: i32, %col: i32):
    %h = arith.truncf %v : vector<2xf32> to vector<2xbf16>
    tile.store %h, %y[%col] : vector<2xbf16>, !tile.ptr<bf16>
  }
}

!staging = !tile.smem<64x64xbf16, swizzle = 128>
!map = !tile.tensor_map<64x64xbf16, swizzle = 128>

// CHECK-LABEL: tile.kernel @store
tile.kernel @store(%d: !map, %f: f32, %r: i32) threads(128) {
  %out = tile.shared per_warpgroup buffers(2) : !staging
  %s = tile.fill %f : f32 -> !s
  %h = tile.convert %s : !s -> !tile.frag<64x128xbf16>
  // CHECK: tile.store_tma %{{.*}}, %{{.*}} -> %{{.*}}[%{{.*}}, %{{.*}}] : <64x128xbf16>, <64x64xbf16, swizzle = 128> -> <64x64xbf16, swizzle = 128>
  tile.store_tma %h, %out -> %d[%r, %r] : !tile.frag<64x128xbf16>, !staging -> !map
}

// CHECK-LABEL: tile.kernel @parts
tile.kernel @parts(%f: f32) threads(128) cluster(2) {
  %s = tile.fill %f : f32 -> !s
  // CHECK: tile.columns %{{.*}} from(64) : <64x128xf32> -> <64x64xf32>
  %c = tile.columns %s from(64) : !s -> !tile.frag<64x64xf32>
  // CHECK: tile.cluster_reduce %{{.*}} : <64x128xf32> -> <64x64xf32>
  %h = tile.cluster_reduce %s : !s -> !tile.frag<64x64xf32>
}

!wide = !tile.smem<64x32xf32, swizzle = 128>
!wide_map = !tile.tensor_map<64x32xf32, swizzle = 128>

// CHECK-LABEL: tile.kernel @store_f32
tile.kernel @store_f32(%d: !wide_map, %f: f32, %r: i32) threads(128) {
  %out = tile.shared per_warpgroup buffers(2) : !wide
  %s = tile.fill %f : f32 -> !s
  // CHECK: tile.store_tma
  tile.store_tma %s, %out -> %d[%r, %r] : !s, !wide -> !wide_map
  // CHECK: tile.store_tma %{{.*}}, %{{.*}} -> %{{.*}}[%{{.*}}, %{{.*}}] accumulate :
  tile.store_tma %s, %out -> %d[%r, %r] accumulate : !s, !wide -> !wide_map
}
