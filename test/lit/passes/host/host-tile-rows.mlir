// The body of a kernel for one row at a time.
// RUN: llmc-opt %s --host-tile-rows | FileCheck %s

// 7 rows of 576 elements are a tile.
// CHECK-LABEL: func.func @norm(%{{.*}}: !llvm.ptr, %{{.*}}: i64)
// CHECK-SAME: host.rows_per_tile = 7 : i64
// CHECK: scf.for %[[ROW:.*]] =
// CHECK: memref.subview %{{.*}}[%[[ROW]], 0] [1, 576]
// CHECK: bufferization.to_tensor %{{.*}} restrict
// CHECK: %[[Y:.*]] = llm.rms_norm %{{.*}} : tensor<1x576xf32>, tensor<576xf32> -> tensor<1x576xf32>
// CHECK: bufferization.materialize_in_destination %[[Y]] in restrict writable
llm.kernel @norm(%x: tensor<?x576xf32>, %g: tensor<576xf32>) -> tensor<?x576xf32> attributes {anchor = "norm"} {
  %y = llm.rms_norm %x, %g {eps = 1.0e-5 : f64} : tensor<?x576xf32>, tensor<576xf32> -> tensor<?x576xf32>
  llm.yield %y : tensor<?x576xf32>
}

// What is gathered from keeps all its rows.
// CHECK-LABEL: func.func @gather
// CHECK: llm.gather_rows %{{.*}} : tensor<?x64xf32>, tensor<1xi32> -> tensor<1x64xf32>
llm.kernel @gather(%h: tensor<?x64xf32>, %rows: tensor<?xi32>) -> tensor<?x64xf32> attributes {anchor = "norm"} {
  %y = llm.gather_rows %h, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  llm.yield %y : tensor<?x64xf32>
}

// An embedding reads a table that lies in panels.
// CHECK-LABEL: func.func @embed
// CHECK-NOT: llm.embedding
// CHECK: memref.load %{{.*}} : memref<3x64x32x1xbf16>
llm.kernel @embed(%ids: tensor<?xi32>, %w: tensor<75x64xbf16> {llm.layout = #llm.panels<rows = 32, group = 1>}) -> tensor<?x64xf32> attributes {anchor = "embedding"} {
  %h = llm.embedding %ids, %w : tensor<?xi32>, tensor<75x64xbf16> -> tensor<?x64xf32>
  llm.yield %h : tensor<?x64xf32>
}
