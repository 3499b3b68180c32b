// RUN: llmc-opt %s --split-input-file --llm-convert-to-paged=block-size=32 | FileCheck %s

// Layers are numbered in program order; their types follow their own keys and values.
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[TOKENS:[^,]*]]: tensor<?xi32>, %[[POS:[^,]*]]: tensor<?xi32>, %[[ROWS:[^,]*]]: tensor<?xi32>, %[[BATCH:[^,]*]]: !llm.batch,
// CHECK-SAME: %[[KV:[^,]*]]: !llm.kv_cache<1 x !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 32, element = f32>, 1 x !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 32, element = f32>>
// CHECK: %[[Q:.*]] = tensor.expand_shape
// CHECK: %[[K:.*]] = tensor.extract_slice
// CHECK: %[[L0:.*]] = llm.kv_layer %[[KV]][0]
// CHECK-NEXT: llm.kv_append %[[K]], %[[K]], %[[L0]], %[[BATCH]]
// CHECK-NEXT: llm.paged_attention %[[Q]], %[[L0]], %[[BATCH]] {causal, scale = 5.000000e-01 : f64, softcap = 3.000000e+01 : f64, window = 16 : i64}
// CHECK: %[[V:.*]] = tensor.extract_slice
// CHECK: %[[L1:.*]] = llm.kv_layer %[[KV]][1]
// CHECK-NEXT: llm.kv_append %[[Q]], %[[V]], %[[L1]], %[[BATCH]]
// CHECK-NEXT: llm.paged_attention %[[Q]], %[[L1]], %[[BATCH]] sinks(%{{.*}} : tensor<2xf32>) {causal, scale = 1.000000e+00 : f64}
// CHECK-NOT: llm.attention
llm.parameter @w : tensor<16x16xf32> from #llm.source<"w">
llm.parameter @sinks : tensor<2xf32> from #llm.source<"sinks">
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %tokens, %c0 : tensor<?xi32>
  %w = llm.weight @w : tensor<16x16xf32>
  %s = llm.weight @sinks : tensor<2xf32>
  %h = llm.embedding %tokens, %w : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %q = tensor.expand_shape %h [[0], [1, 2]] output_shape [%t, 2, 8] : tensor<?x16xf32> into tensor<?x2x8xf32>
  %k = tensor.extract_slice %q[0, 0, 0] [%t, 1, 8] [1, 1, 1] : tensor<?x2x8xf32> to tensor<?x1x8xf32>
  %o = llm.attention %q, %k, %k {scale = 0.5 : f64, causal, window = 16 : i64, softcap = 30.0 : f64} : tensor<?x2x8xf32>, tensor<?x1x8xf32>, tensor<?x1x8xf32> -> tensor<?x2x8xf32>
  %v = tensor.extract_slice %o[0, 0, 0] [%t, 2, 4] [1, 1, 1] : tensor<?x2x8xf32> to tensor<?x2x4xf32>
  %p = llm.attention %q, %q, %v sinks(%s : tensor<2xf32>) {scale = 1.0 : f64, causal} : tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x2x4xf32>
  %y = tensor.collapse_shape %p [[0], [1, 2]] : tensor<?x2x4xf32> into tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// Attentions over the same keys and values share a layer and append once.
// CHECK-LABEL: func.func @step
// CHECK-SAME: !llm.kv_cache<1 x !llm.kv<
// CHECK-COUNT-1: llm.kv_append
// CHECK-NOT: llm.kv_append
// CHECK: llm.paged_attention
// CHECK: llm.paged_attention
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %tokens, %c0 : tensor<?xi32>
  %f = arith.sitofp %tokens : tensor<?xi32> to tensor<?xf32>
  %e = tensor.expand_shape %f [[0, 1, 2]] output_shape [%t, 1, 1] : tensor<?xf32> into tensor<?x1x1xf32>
  %k = llm.broadcast %e : tensor<?x1x1xf32> -> tensor<?x1x8xf32>
  %o = llm.attention %k, %k, %k {scale = 0.5 : f64, causal} : tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?x1x8xf32> -> tensor<?x1x8xf32>
  %p = llm.attention %o, %k, %k {scale = 0.5 : f64, causal} : tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?x1x8xf32> -> tensor<?x1x8xf32>
  %y = tensor.collapse_shape %p [[0], [1, 2]] : tensor<?x1x8xf32> into tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
