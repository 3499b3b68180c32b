// A block of rows times a panel in registers, the epilogue on them.
// RUN: llmc-opt %s --host-lower-linear | FileCheck %s
// RUN: llmc-opt %s --host-lower-linear=vector-bits=256 | FileCheck %s --check-prefix=AVX2

// 3 panels of 32 columns; rows in blocks of 12, 8, 4, 2, 1.
// CHECK-LABEL: func.func @residual(%{{.*}}: !llvm.ptr, %{{.*}}: i64)
// CHECK-SAME: host.anchor = "linear"
// CHECK-SAME: host.arguments = [{i32 = "rows"}, {operand = 0 : i64}, {operand = 1 : i64}, {operand = 2 : i64}, {result = 0 : i64}]
// CHECK-SAME: host.column_tiles = 3 : i64
// CHECK-SAME: host.rows_per_tile = 48 : i64
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args
// CHECK: vector.load %{{.*}} : memref<3x90x32xbf16>, vector<16xbf16>
// CHECK: arith.extf %{{.*}} : vector<16xbf16> to vector<16xf32>
// CHECK-COUNT-24: vector.fma
// CHECK: scf.yield
// The last panel is cut: 75 = 2 * 32 + 11.
// CHECK: vector.create_mask
// CHECK: vector.maskedload
// CHECK: arith.addf %{{.*}} : vector<16xf32>
// CHECK: vector.maskedstore
// One row and two rows stream the panel, a page ahead.
// CHECK: memref.prefetch %{{.*}}, read, locality<3>, data : memref<3x90x32xbf16>
// AVX2-LABEL: func.func @residual
// AVX2: vector.load %{{.*}} : memref<3x90x32xbf16>, vector<8xbf16>
// AVX2: vector.fma {{.*}} : vector<8xf32>
llm.kernel @residual(%x: tensor<?x90xf32>, %w: tensor<75x90xbf16> {llm.layout = #llm.panels<rows = 32, group = 1>}, %r: tensor<?x75xf32>) -> tensor<?x75xf32> attributes {anchor = "linear"} {
  %y = llm.linear %x, %w : tensor<?x90xf32>, tensor<75x90xbf16> -> tensor<?x75xf32>
  %s = arith.addf %y, %r : tensor<?x75xf32>
  llm.yield %s : tensor<?x75xf32>
}

// Gates and ups alternate: two shuffles part them.
// CHECK-LABEL: func.func @interleaved
// CHECK-SAME: host.column_tiles = 2 : i64
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 2, 4
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [1, 3, 5
// CHECK: vector.store %{{.*}} : memref<?x32xf32>, vector<16xf32>
llm.kernel @interleaved(%x: tensor<?x64xf32>, %w: tensor<64x64xbf16> {llm.layout = #llm.panels<rows = 32, group = 1>}) -> tensor<?x32xf32> attributes {anchor = "linear"} {
  %y = llm.linear %x, %w : tensor<?x64xf32>, tensor<64x64xbf16> -> tensor<?x64xf32>
  %a = llm.packed_glu silu interleaved %y : tensor<?x64xf32> -> tensor<?x32xf32>
  llm.yield %a : tensor<?x32xf32>
}

// Gates and ups in two panels: a tile multiplies by both.
// CHECK-LABEL: func.func @split
// CHECK-SAME: host.column_tiles = 1 : i64
// CHECK-NOT: vector.shuffle
// CHECK: return
llm.kernel @split(%x: tensor<?x64xf32>, %w: tensor<64x64xbf16> {llm.layout = #llm.panels<rows = 32, group = 1>}) -> tensor<?x32xf32> attributes {anchor = "linear"} {
  %y = llm.linear %x, %w : tensor<?x64xf32>, tensor<64x64xbf16> -> tensor<?x64xf32>
  %a = llm.packed_glu silu split %y : tensor<?x64xf32> -> tensor<?x32xf32>
  llm.yield %a : tensor<?x32xf32>
}

// A weight in rows is left to host-tile-rows.
// CHECK: llm.kernel @rows
llm.kernel @rows(%x: tensor<?x64xf32>, %w: tensor<64x64xbf16>) -> tensor<?x64xf32> attributes {anchor = "linear"} {
  %y = llm.linear %x, %w : tensor<?x64xf32>, tensor<64x64xbf16> -> tensor<?x64xf32>
  llm.yield %y : tensor<?x64xf32>
}
