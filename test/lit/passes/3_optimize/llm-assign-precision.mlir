// RUN: llmc-opt %s --split-input-file --llm-assign-precision | FileCheck %s
// RUN: llmc-opt %s --split-input-file --llm-assign-precision="weights=f16 activations=f32 kv=f32" | FileCheck %s --check-prefix=HOST

// A layer: what feeds a GEMM, a rope or the cache is narrow, written so by its
// producer; the residual stream and the logits stay float32; nothing is cast.
// CHECK: llm.parameter @w : tensor<8x8xbf16>
// CHECK: llm.parameter @norm : tensor<8xbf16>
// CHECK: llm.parameter @inv_freq : tensor<4xf32>
// CHECK-LABEL: func.func @step
// CHECK-SAME: element = bf16
// CHECK-NOT: arith.truncf
// CHECK: llm.embedding %{{.*}} -> tensor<?x8xf32>
// CHECK: llm.rms_norm %{{.*}} : tensor<?x8xf32>, tensor<8xbf16> -> tensor<?x8xbf16>
// CHECK: llm.linear %{{.*}} : tensor<?x8xbf16>, tensor<8x8xbf16> -> tensor<?x8xbf16>
// CHECK: tensor.expand_shape %{{.*}} into tensor<?x1x8xbf16>
// CHECK: llm.rope half %{{.*}} : tensor<?x1x8xbf16>, tensor<?x4xf32> -> tensor<?x1x8xbf16>
// CHECK: llm.paged_attention %{{.*}} -> tensor<?x1x8xbf16>
// CHECK: llm.linear %{{.*}} : tensor<?x8xbf16>, tensor<8x8xbf16> -> tensor<?x8xf32>
// CHECK: arith.addf %{{.*}} : tensor<?x8xf32>
// CHECK: llm.linear %{{.*}} : tensor<?x8xbf16>, tensor<8x8xbf16> -> tensor<?x8xbf16>
// CHECK: llm.glu silu %{{.*}} : tensor<?x8xbf16>, tensor<?x8xbf16> -> tensor<?x8xbf16>
// CHECK: llm.linear %{{.*}} : tensor<?x8xbf16>, tensor<8x8xbf16> -> tensor<?x8xf32>
// CHECK-NOT: arith.truncf

// On the host only weights are narrow.
// HOST: llm.parameter @w : tensor<8x8xf16>
// HOST-LABEL: func.func @step
// HOST-SAME: element = f32
// HOST: llm.rms_norm %{{.*}} : tensor<?x8xf32>, tensor<8xf16> -> tensor<?x8xf32>
// HOST: llm.linear %{{.*}} : tensor<?x8xf32>, tensor<8x8xf16> -> tensor<?x8xf32>
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">
llm.parameter @norm : tensor<8xf32> from #llm.source<"norm">
llm.parameter @inv_freq : tensor<4xf32> = dense<1.0> : tensor<4xf32>
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %batch: !llm.batch, %kv: !llm.kv_cache<1 x !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %tokens, %c0 : tensor<?xi32>
  %w = llm.weight @w : tensor<8x8xf32>
  %g = llm.weight @norm : tensor<8xf32>
  %f = llm.weight @inv_freq : tensor<4xf32>
  %cos, %sin = llm.rope_table %positions, %f {attention_scaling = 1.0 : f64} : tensor<?xi32>, tensor<4xf32> -> tensor<?x4xf32>
  %h = llm.embedding %tokens, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %n = llm.rms_norm %h, %g {eps = 1.0e-5 : f64} : tensor<?x8xf32>, tensor<8xf32> -> tensor<?x8xf32>
  %p = llm.linear %n, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %d = tensor.dim %p, %c0 : tensor<?x8xf32>
  %q = tensor.expand_shape %p [[0], [1, 2]] output_shape [%d, 1, 8] : tensor<?x8xf32> into tensor<?x1x8xf32>
  %qr = llm.rope half %q, %cos, %sin : tensor<?x1x8xf32>, tensor<?x4xf32> -> tensor<?x1x8xf32>
  %l = llm.kv_layer %kv[0] : !llm.kv_cache<1 x !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>> -> !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>
  llm.kv_append %qr, %q, %l, %batch : tensor<?x1x8xf32>, tensor<?x1x8xf32>, !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>
  %o = llm.paged_attention %qr, %l, %batch {scale = 0.5 : f64, causal} : tensor<?x1x8xf32>, !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32> -> tensor<?x1x8xf32>
  %oc = tensor.collapse_shape %o [[0], [1, 2]] : tensor<?x1x8xf32> into tensor<?x8xf32>
  %a = llm.linear %oc, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %r = arith.addf %h, %a : tensor<?x8xf32>
  %n2 = llm.rms_norm %r, %g {eps = 1.0e-5 : f64} : tensor<?x8xf32>, tensor<8xf32> -> tensor<?x8xf32>
  %gate = llm.linear %n2, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %up = llm.linear %n2, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %m = llm.glu silu %gate, %up : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %y = llm.linear %m, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// A GEMM that reads the residual stream gets a cast, one for both readers. An offset
// in a recipe keeps the parameter in float32, and so does a reader that computes.
// CHECK: llm.parameter @norm : tensor<8xf32> from #llm.offset
// CHECK: llm.parameter @bias : tensor<8xf32>
// CHECK-LABEL: func.func @step
// CHECK: %[[H:.*]] = arith.addf
// CHECK: %[[C:.*]] = arith.truncf %[[H]] : tensor<?x8xf32> to tensor<?x8xbf16>
// CHECK-NOT: arith.truncf
// CHECK: %[[A:.*]] = llm.linear %[[C]]
// CHECK: %[[B:.*]] = llm.linear %[[C]]
// CHECK: llm.glu relu %[[A]], %[[B]] : tensor<?x8xbf16>, tensor<?x8xbf16> -> tensor<?x8xbf16>
// CHECK: llm.linear %{{.*}} -> tensor<?x8xbf16>
// CHECK: llm.rms_norm %{{.*}} : tensor<?x8xbf16>, tensor<8xf32> -> tensor<?x8xf32>
// CHECK: arith.addf
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">
llm.parameter @norm : tensor<8xf32> from #llm.offset<#llm.source<"norm">, 1.0 : f32>
llm.parameter @bias : tensor<8xf32> from #llm.source<"bias">
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %tokens, %c0 : tensor<?xi32>
  %w = llm.weight @w : tensor<8x8xf32>
  %g = llm.weight @norm : tensor<8xf32>
  %b = llm.weight @bias : tensor<8xf32>
  %bb = llm.broadcast %b sizes(%t) : tensor<8xf32> -> tensor<?x8xf32>
  %e = llm.embedding %tokens, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %h = arith.addf %e, %bb : tensor<?x8xf32>
  %gate = llm.linear %h, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %up = llm.linear %h, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %m = llm.glu relu %gate, %up : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %d = llm.linear %m, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %n = llm.rms_norm %d, %g {eps = 1.0e-5 : f64} : tensor<?x8xf32>, tensor<8xf32> -> tensor<?x8xf32>
  %y = arith.addf %h, %n : tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
