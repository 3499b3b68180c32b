// RUN: llmc-opt --canonicalize %s | FileCheck %s

// The identity folds unless it converts.
// CHECK-LABEL: func.func @activation
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf32>
func.func @activation(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xbf16>, tensor<?x8xf32>) {
  %0 = llm.activation identity %x : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: %[[NARROW:.*]] = llm.activation identity %[[X]]
  %1 = llm.activation identity %x : tensor<?x8xf32> -> tensor<?x8xbf16>
  // CHECK: %[[SILU:.*]] = llm.activation silu %[[X]]
  %2 = llm.activation silu %x : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: return %[[X]], %[[NARROW]], %[[SILU]]
  return %0, %1, %2 : tensor<?x8xf32>, tensor<?x8xbf16>, tensor<?x8xf32>
}
