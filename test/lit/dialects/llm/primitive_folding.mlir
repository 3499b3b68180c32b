// RUN: llmc-opt --canonicalize %s | FileCheck %s

// Reducing dimensions of size 1 changes nothing; others stay.
// CHECK-LABEL: func.func @reduce
// CHECK-SAME: %[[X:.*]]: tensor<?x1xf32>, %[[Y:.*]]: tensor<?x8xf32>
func.func @reduce(%x: tensor<?x1xf32>, %y: tensor<?x8xf32>) -> (tensor<?x1xf32>, tensor<?x1xbf16>, tensor<?x1xf32>) {
  // CHECK-NOT: llm.reduce max
  %0 = llm.reduce max %x {dims = array<i64: 1>} : tensor<?x1xf32> -> tensor<?x1xf32>
  // A conversion is not nothing.
  // CHECK: %[[NARROW:.*]] = llm.reduce sum %[[X]]
  %1 = llm.reduce sum %x {dims = array<i64: 1>} : tensor<?x1xf32> -> tensor<?x1xbf16>
  // CHECK: %[[SUM:.*]] = llm.reduce sum %[[Y]]
  %2 = llm.reduce sum %y {dims = array<i64: 1>} : tensor<?x8xf32> -> tensor<?x1xf32>
  // CHECK: return %[[X]], %[[NARROW]], %[[SUM]]
  return %0, %1, %2 : tensor<?x1xf32>, tensor<?x1xbf16>, tensor<?x1xf32>
}

// A broadcast to the shape that the input has, its dynamic sizes included.
// CHECK-LABEL: func.func @broadcast
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf32>, %[[Y:.*]]: tensor<1x8xf32>, %[[N:.*]]: index
func.func @broadcast(%x: tensor<?x8xf32>, %y: tensor<1x8xf32>, %n: index) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = llm.broadcast %x : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: %[[WIDE:.*]] = llm.broadcast %[[Y]] sizes(%[[N]])
  %1 = llm.broadcast %y sizes(%n) : tensor<1x8xf32> -> tensor<?x8xf32>
  // CHECK: return %[[X]], %[[WIDE]]
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// The identity, and two permutations that undo each other, fold; one that does not
// undo the other stays.
// CHECK-LABEL: func.func @transpose
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4xf32>
func.func @transpose(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<4x2x3xf32>) {
  %0 = llm.transpose %x {permutation = array<i64: 0, 1, 2>} : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  // CHECK: %[[Y:.*]] = llm.transpose %[[X]]
  %1 = llm.transpose %x {permutation = array<i64: 1, 2, 0>} : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %2 = llm.transpose %1 {permutation = array<i64: 2, 0, 1>} : tensor<3x4x2xf32> -> tensor<2x3x4xf32>
  // CHECK: %[[Z:.*]] = llm.transpose %[[Y]]
  %3 = llm.transpose %1 {permutation = array<i64: 1, 2, 0>} : tensor<3x4x2xf32> -> tensor<4x2x3xf32>
  // CHECK: return %[[X]], %[[X]], %[[Z]]
  return %0, %2, %3 : tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<4x2x3xf32>
}

// A square permutation that is no identity keeps its type, and stays.
// CHECK-LABEL: func.func @square
func.func @square(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK: llm.transpose
  %0 = llm.transpose %x {permutation = array<i64: 1, 0>} : tensor<4x4xf32> -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
