// RUN: llmc-opt %s --split-input-file --llm-raise-attention | FileCheck %s

// Keys and values repeated for each query head of their group, between transposes.
// CHECK-LABEL: func @repeat_kv
// CHECK-SAME: %[[Q:.*]]: tensor<?x4x8xf32>, %[[K:.*]]: tensor<?x2x8xf32>, %[[V:.*]]: tensor<?x2x8xf32>
// CHECK-NEXT: %[[O:.*]] = llm.attention %[[Q]], %[[K]], %[[V]] {causal, scale = 1.000000e+00 : f64}
// CHECK-NEXT: return %[[O]]
func.func @repeat_kv(%q: tensor<?x4x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x8xf32>, %t: index) -> tensor<?x4x8xf32> {
  %k1 = tensor.expand_shape %k [[0], [1, 2], [3]] output_shape [%t, 2, 1, 8] : tensor<?x2x8xf32> into tensor<?x2x1x8xf32>
  %k2 = llm.broadcast %k1 : tensor<?x2x1x8xf32> -> tensor<?x2x2x8xf32>
  %k3 = tensor.collapse_shape %k2 [[0], [1, 2], [3]] : tensor<?x2x2x8xf32> into tensor<?x4x8xf32>
  %vt = llm.transpose %v {permutation = array<i64: 1, 0, 2>} : tensor<?x2x8xf32> -> tensor<2x?x8xf32>
  %v1 = tensor.expand_shape %vt [[0, 1], [2], [3]] output_shape [2, 1, %t, 8] : tensor<2x?x8xf32> into tensor<2x1x?x8xf32>
  %v2 = llm.broadcast %v1 : tensor<2x1x?x8xf32> -> tensor<2x2x?x8xf32>
  %v3 = tensor.collapse_shape %v2 [[0, 1], [2], [3]] : tensor<2x2x?x8xf32> into tensor<4x?x8xf32>
  %v4 = llm.transpose %v3 {permutation = array<i64: 1, 0, 2>} : tensor<4x?x8xf32> -> tensor<?x4x8xf32>
  %o = llm.attention %q, %k3, %v4 {scale = 1.0 : f64, causal} : tensor<?x4x8xf32>, tensor<?x4x8xf32>, tensor<?x4x8xf32> -> tensor<?x4x8xf32>
  return %o : tensor<?x4x8xf32>
}

// -----

// Heads repeated in another order are not grouped: head h would read the wrong keys.
// CHECK-LABEL: func @tiled_kv
// CHECK: llm.attention %{{.*}} : tensor<?x4x8xf32>, tensor<?x4x8xf32>, tensor<?x4x8xf32>
func.func @tiled_kv(%q: tensor<?x4x8xf32>, %k: tensor<?x2x8xf32>) -> tensor<?x4x8xf32> {
  %kk = tensor.concat dim(1) %k, %k : (tensor<?x2x8xf32>, tensor<?x2x8xf32>) -> tensor<?x4x8xf32>
  %o = llm.attention %q, %kk, %kk {scale = 1.0 : f64, causal} : tensor<?x4x8xf32>, tensor<?x4x8xf32>, tensor<?x4x8xf32> -> tensor<?x4x8xf32>
  return %o : tensor<?x4x8xf32>
}

// -----

// Scales of queries (in front of view and rope) and of keys move into the attention.
// CHECK-LABEL: func @scales
// CHECK-SAME: %[[Q:.*]]: tensor<?x16xf32>, %[[K:.*]]: tensor<?x2x8xf32>
// CHECK: %[[QH:.*]] = tensor.expand_shape %[[Q]]
// CHECK-NEXT: %[[QR:.*]] = llm.rope half %[[QH]]
// CHECK-NEXT: llm.attention %[[QR]], %[[K]], %[[K]] {causal, scale = 1.250000e-01 : f64}
func.func @scales(%q: tensor<?x16xf32>, %k: tensor<?x2x8xf32>, %cos: tensor<?x4xf32>, %sin: tensor<?x4xf32>, %t: index) -> tensor<?x2x8xf32> {
  %c = arith.constant dense<0.25> : tensor<f32>
  %two = arith.constant dense<2.0> : tensor<f32>
  %cb = llm.broadcast %c sizes(%t) : tensor<f32> -> tensor<?x16xf32>
  %tb = llm.broadcast %two sizes(%t) : tensor<f32> -> tensor<?x2x8xf32>
  %qs = arith.mulf %q, %cb : tensor<?x16xf32>
  %qh = tensor.expand_shape %qs [[0], [1, 2]] output_shape [%t, 2, 8] : tensor<?x16xf32> into tensor<?x2x8xf32>
  %qr = llm.rope half %qh, %cos, %sin : tensor<?x2x8xf32>, tensor<?x4xf32> -> tensor<?x2x8xf32>
  %ks = arith.divf %k, %tb : tensor<?x2x8xf32>
  %o = llm.attention %qr, %ks, %k {scale = 1.0 : f64, causal} : tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32> -> tensor<?x2x8xf32>
  return %o : tensor<?x2x8xf32>
}

// -----

// Transposes around norms of heads and around slices of packed heads cancel.
// CHECK-LABEL: func @transposes
// CHECK-NOT: llm.transpose
// CHECK: llm.rms_norm %{{.*}} : tensor<?x2x8xf32>, tensor<8xf32>
// CHECK: tensor.extract_slice %{{.*}}[0, 0, 8] [%{{.*}}, 2, 8] [1, 1, 1] : tensor<?x2x16xf32> to tensor<?x2x8xf32>
// CHECK-NOT: llm.transpose
func.func @transposes(%q: tensor<?x2x8xf32>, %kv: tensor<?x2x16xf32>, %g: tensor<8xf32>, %t: index) -> tensor<?x2x8xf32> {
  %qt = llm.transpose %q {permutation = array<i64: 1, 0, 2>} : tensor<?x2x8xf32> -> tensor<2x?x8xf32>
  %n = llm.rms_norm %qt, %g {eps = 1.0e-5 : f64} : tensor<2x?x8xf32>, tensor<8xf32> -> tensor<2x?x8xf32>
  %q1 = llm.transpose %n {permutation = array<i64: 1, 0, 2>} : tensor<2x?x8xf32> -> tensor<?x2x8xf32>
  %kvt = llm.transpose %kv {permutation = array<i64: 1, 0, 2>} : tensor<?x2x16xf32> -> tensor<2x?x16xf32>
  %kt = tensor.extract_slice %kvt[0, 0, 8] [2, %t, 8] [1, 1, 1] : tensor<2x?x16xf32> to tensor<2x?x8xf32>
  %k1 = llm.transpose %kt {permutation = array<i64: 1, 0, 2>} : tensor<2x?x8xf32> -> tensor<?x2x8xf32>
  %o = llm.attention %q1, %k1, %k1 {scale = 1.0 : f64, causal} : tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32> -> tensor<?x2x8xf32>
  return %o : tensor<?x2x8xf32>
}
