// RUN: llmc-opt %s | FileCheck %s
// RUN: llmc-opt --mlir-print-op-generic %s | llmc-opt | FileCheck %s

// The vocabulary of imported graphs.

// CHECK-LABEL: func.func @reduce
func.func @reduce(%x: tensor<?x8xf32>) {
  // CHECK: llm.reduce sum %{{.*}} {dims = array<i64: 1>} : tensor<?x8xf32> -> tensor<?x1xf32>
  %0 = llm.reduce sum %x {dims = array<i64: 1>} : tensor<?x8xf32> -> tensor<?x1xf32>
  // CHECK: llm.reduce mean %{{.*}} {dims = array<i64: 1>} : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = llm.reduce mean %x {dims = array<i64: 1>} : tensor<?x8xf32> -> tensor<?x1xf32>
  // CHECK: llm.reduce max %{{.*}} {dims = array<i64: 1>} : tensor<?x8xf32> -> tensor<?x1xf32>
  %2 = llm.reduce max %x {dims = array<i64: 1>} : tensor<?x8xf32> -> tensor<?x1xf32>
  // Several dimensions at once.
  // CHECK: llm.reduce sum %{{.*}} {dims = array<i64: 0, 1>} : tensor<?x8xf32> -> tensor<1x1xf32>
  %3 = llm.reduce sum %x {dims = array<i64: 0, 1>} : tensor<?x8xf32> -> tensor<1x1xf32>
  return
}

// CHECK-LABEL: func.func @broadcast
func.func @broadcast(%x: tensor<?x1xf32>, %g: tensor<8xf32>, %n: index) {
  // CHECK: llm.broadcast %{{.*}} : tensor<?x1xf32> -> tensor<?x8xf32>
  %0 = llm.broadcast %x : tensor<?x1xf32> -> tensor<?x8xf32>
  // A leading dimension of a size known at run time.
  // CHECK: llm.broadcast %{{.*}} sizes(%{{.*}}) : tensor<8xf32> -> tensor<?x8xf32>
  %1 = llm.broadcast %g sizes(%n) : tensor<8xf32> -> tensor<?x8xf32>
  // CHECK: llm.broadcast %{{.*}} sizes(%{{.*}}) : tensor<?x1xf32> -> tensor<?x?xf32>
  %2 = llm.broadcast %x sizes(%n) : tensor<?x1xf32> -> tensor<?x?xf32>
  return
}

// CHECK-LABEL: func.func @transpose
func.func @transpose(%x: tensor<?x2x8xf32>) {
  // CHECK: llm.transpose %{{.*}} {permutation = array<i64: 1, 0, 2>} : tensor<?x2x8xf32> -> tensor<2x?x8xf32>
  %0 = llm.transpose %x {permutation = array<i64: 1, 0, 2>} : tensor<?x2x8xf32> -> tensor<2x?x8xf32>
  return
}

// CHECK-LABEL: func.func @matmul
func.func @matmul(%a: tensor<?x4xf32>, %b: tensor<4x8xf32>, %c: tensor<2x?x4xf32>, %d: tensor<2x4x?xf32>) {
  // CHECK: llm.matmul %{{.*}}, %{{.*}} : tensor<?x4xf32>, tensor<4x8xf32> -> tensor<?x8xf32>
  %0 = llm.matmul %a, %b : tensor<?x4xf32>, tensor<4x8xf32> -> tensor<?x8xf32>
  // Batched.
  // CHECK: llm.matmul %{{.*}}, %{{.*}} : tensor<2x?x4xf32>, tensor<2x4x?xf32> -> tensor<2x?x?xf32>
  %1 = llm.matmul %c, %d : tensor<2x?x4xf32>, tensor<2x4x?xf32> -> tensor<2x?x?xf32>
  return
}
