// Codes are widened on the way into registers, rows by a table.
// RUN: llmc-opt %s --host-lower-linear | FileCheck %s

// CHECK: memref.global "private" constant @f8E4M3FN_values : memref<256xf32>
// CHECK-LABEL: func.func @rowwise
// CHECK: %[[TABLE:.*]] = memref.get_global @f8E4M3FN_values
// CHECK: vector.load %{{.*}} : memref<2x64x32xf8E4M3FN>, vector<16xf8E4M3FN>
// CHECK: memref.load %[[TABLE]]
// CHECK: vector.fma
// The scales of the weight, then that of the row.
// CHECK: vector.load %{{.*}} : memref<2x1x32xf32>
// CHECK: arith.mulf
// CHECK: memref.load %{{.*}} : memref<?x1xf32>
// CHECK: arith.mulf
llm.kernel @rowwise(%x: tensor<?x64xf8E4M3FN>, %w: tensor<64x64xf8E4M3FN> {llm.layout = #llm.panels<rows = 32, group = 1>}, %s: tensor<64x1xf32> {llm.layout = #llm.panels<rows = 32, group = 1>}, %xs: tensor<?x1xf32>) -> tensor<?x64xf32> attributes {anchor = "linear"} {
  %y = llm.scaled_linear %x, %w weight_scale(%s : tensor<64x1xf32>) input_scale(%xs : tensor<?x1xf32>) : tensor<?x64xf8E4M3FN>, tensor<64x64xf8E4M3FN> -> tensor<?x64xf32>
  llm.yield %y : tensor<?x64xf32>
}

// Each group has sums of its own, scaled before they are added up; a byte holds two k.
// CHECK-LABEL: func.func @groups
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args
// CHECK: scf.for {{.*}} iter_args
// CHECK: vector.load %{{.*}} : memref<2x32x32xi8>, vector<16xi8>
// CHECK: arith.shli
// CHECK: arith.shrsi
// CHECK: vector.fma
// CHECK: vector.load %{{.*}} : memref<2x2x32xf32>
llm.kernel @groups(%x: tensor<?x64xf32>, %w: tensor<64x64xi4> {llm.layout = #llm.panels<rows = 32, group = 2>}, %s: tensor<64x2xf32> {llm.layout = #llm.panels<rows = 32, group = 1>}) -> tensor<?x64xf32> attributes {anchor = "linear"} {
  %y = llm.scaled_linear %x, %w weight_scale(%s : tensor<64x2xf32>) : tensor<?x64xf32>, tensor<64x64xi4> -> tensor<?x64xf32>
  llm.yield %y : tensor<?x64xf32>
}

// Zero points are read once a group and subtracted from each code.
// CHECK-LABEL: func.func @zeros
// CHECK: vector.load %{{.*}} : memref<2x2x32xf32>
// CHECK: %[[Z:.*]] = vector.load %{{.*}} : memref<2x2x32xi8>, vector<16xi8>
// CHECK: %[[ZERO:.*]] = arith.sitofp %[[Z]] : vector<16xi8> to vector<16xf32>
// CHECK: scf.for {{.*}} iter_args
// CHECK: %[[C:.*]] = arith.sitofp %{{.*}} : vector<16xi32> to vector<16xf32>
// CHECK: arith.subf %[[C]], %[[ZERO]]
// CHECK: vector.fma
llm.kernel @zeros(%x: tensor<?x64xf32>, %w: tensor<64x64xi4> {llm.layout = #llm.panels<rows = 32, group = 2>}, %s: tensor<64x2xf32> {llm.layout = #llm.panels<rows = 32, group = 1>}, %z: tensor<64x2xi8> {llm.layout = #llm.panels<rows = 32, group = 1>}) -> tensor<?x64xf32> attributes {anchor = "linear"} {
  %y = llm.scaled_linear %x, %w weight_scale(%s : tensor<64x2xf32>) weight_zero(%z : tensor<64x2xi8>) : tensor<?x64xf32>, tensor<64x64xi4> -> tensor<?x64xf32>
  llm.yield %y : tensor<?x64xf32>
}
