// RUN: llmc-opt %s --split-input-file --llm-select-logit-rows | FileCheck %s

// Up through softcap, projection and norm, to the residual sum: its two addends both
// have rows. The constant of the softcap is repeated for logit rows, not for tokens.
// CHECK-LABEL: func.func @step
// CHECK-SAME: %{{[^,]*}}: tensor<?xi32>, %{{[^,]*}}: tensor<?xi32>, %[[ROWS:[^,]*]]: tensor<?xi32>
// CHECK: %[[H:.*]] = arith.addf
// CHECK: %[[R:.*]] = llm.gather_rows %[[H]], %[[ROWS]]
// CHECK: %[[COUNT:.*]] = tensor.dim %[[R]]
// CHECK: llm.broadcast %{{.*}} sizes(%[[COUNT]])
// CHECK: %[[N:.*]] = llm.rms_norm %[[R]]
// CHECK: %[[Y:.*]] = llm.linear %[[N]]
// CHECK: arith.divf %[[Y]]
// CHECK: math.tanh
llm.parameter @w : tensor<16x8xf32> from #llm.source<"w">
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %batch: !llm.batch, %kv: !llm.kv_cache<1 x !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>>) -> tensor<?x16xf32> {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %tokens, %c0 : tensor<?xi32>
  %w = llm.weight @w : tensor<16x8xf32>
  %cap = arith.constant dense<30.0> : tensor<f32>
  %cb = llm.broadcast %cap sizes(%t) : tensor<f32> -> tensor<?x16xf32>
  %a = llm.embedding %tokens, %w : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %b = llm.embedding %positions, %w : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %h = arith.addf %a, %b : tensor<?x8xf32>
  %n = llm.rms_norm %h {eps = 1.0e-5 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  %y = llm.linear %n, %w : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  %d = arith.divf %y, %cb : tensor<?x16xf32>
  %e = math.tanh %d : tensor<?x16xf32>
  %f = arith.mulf %e, %cb : tensor<?x16xf32>
  return %f : tensor<?x16xf32>
}

// -----

// A norm that something else reads is not moved; rows are taken behind it.
// CHECK-LABEL: func.func @step
// CHECK: %[[N:.*]] = llm.rms_norm
// CHECK: llm.gather_rows %[[N]]
llm.parameter @w : tensor<16x8xf32> from #llm.source<"w">
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %batch: !llm.batch, %kv: !llm.kv_cache<1 x !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>>) -> tensor<?x16xf32> {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %tokens, %c0 : tensor<?xi32>
  %w = llm.weight @w : tensor<16x8xf32>
  %a = llm.embedding %tokens, %w : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %n = llm.rms_norm %a {eps = 1.0e-5 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  %k = tensor.expand_shape %n [[0], [1, 2]] output_shape [%t, 1, 8] : tensor<?x8xf32> into tensor<?x1x8xf32>
  %l = llm.kv_layer %kv[0] : !llm.kv_cache<1 x !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>> -> !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>
  llm.kv_append %k, %k, %l, %batch : tensor<?x1x8xf32>, tensor<?x1x8xf32>, !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>
  %y = llm.linear %n, %w : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
