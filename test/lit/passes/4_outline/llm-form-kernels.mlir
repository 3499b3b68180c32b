// RUN: llmc-opt --llm-form-kernels --split-input-file %s | FileCheck %s
// RUN: llmc-opt --llm-form-kernels %S/Inputs/llama_step.mlir | FileCheck %s --check-prefix=LLAMA

// A Llama layer is seven kernels; views, casts and sums found their place.
// LLAMA-LABEL: func.func @step
// LLAMA: llm.group "embedding"
// LLAMA: llm.group "rope_table"
// LLAMA: llm.group "norm"
// LLAMA-NEXT: llm.rms_norm
// LLAMA: llm.group "linear" -> tensor<?x960xbf16>
// LLAMA: llm.group "rope_append" -> tensor<?x9x64xbf16>
// LLAMA: %[[DIM:.*]] = tensor.dim %{{.*}}, %{{.*}} : tensor<?x960xbf16>
// LLAMA: tensor.extract_slice
// LLAMA: %[[Q:.*]] = llm.rope half {{.*}} -> tensor<?x9x64xbf16>
// LLAMA: llm.rope
// LLAMA: llm.kv_append
// LLAMA-NEXT: llm.yield %[[Q]]
// LLAMA: llm.group "attention" -> tensor<?x576xbf16>
// LLAMA-NEXT: llm.paged_attention
// LLAMA-NEXT: tensor.collapse_shape
// LLAMA: llm.group "linear" -> tensor<?x576xf32>
// LLAMA-NEXT: llm.linear
// LLAMA-NEXT: arith.addf
// LLAMA: llm.group "norm"
// LLAMA: llm.group "linear" -> tensor<?x1536xbf16>
// LLAMA-NEXT: llm.linear
// LLAMA-NEXT: llm.packed_glu
// LLAMA: llm.group "linear" -> tensor<?x576xf32>
// LLAMA-NEXT: llm.linear
// LLAMA-NEXT: arith.addf
// The second layer, then the head on the rows that need logits.
// LLAMA-COUNT-2: llm.group "norm"
// LLAMA: llm.group "norm"
// LLAMA-NEXT: llm.gather_rows
// LLAMA-NEXT: llm.rms_norm
// LLAMA: llm.group "linear" -> tensor<?x49152xf32>
// LLAMA-NOT: llm.group

// A parallel residual (GPT-NeoX): the first sum waits in the attention's projection,
// the second in the MLP's. The layer norm that both halves read is one kernel.
// CHECK-LABEL: func.func @step
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32> {
  %table = llm.weight @table : tensor<8x8xf32>
  %w = llm.weight @w : tensor<8x8xf32>
  %b = llm.weight @b : tensor<8xf32>
  %h = llm.embedding %tokens, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  // CHECK: llm.group "norm"
  // CHECK-NEXT: llm.layer_norm
  %n = llm.layer_norm %h gamma(%b) beta(%b) {eps = 1.0e-5 : f64} : tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<?x8xf32>
  // CHECK: %[[ATTENTION:.*]] = llm.group "linear"
  // CHECK-NEXT: llm.linear
  // CHECK-NEXT: arith.addf
  %attention = llm.linear %n, %w bias(%b) : tensor<?x8xf32>, tensor<8x8xf32>, tensor<8xf32> -> tensor<?x8xf32>
  %sum = arith.addf %h, %attention : tensor<?x8xf32>
  // CHECK: llm.group "linear"
  // CHECK-NEXT: llm.linear
  // CHECK-NEXT: llm.activation gelu
  %up = llm.linear %n, %w bias(%b) : tensor<?x8xf32>, tensor<8x8xf32>, tensor<8xf32> -> tensor<?x8xf32>
  %act = llm.activation gelu %up : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: llm.group "linear"
  // CHECK-NEXT: %[[MLP:.*]] = llm.linear
  // CHECK-NEXT: arith.addf %[[ATTENTION]], %[[MLP]]
  %mlp = llm.linear %act, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %next = arith.addf %sum, %mlp : tensor<?x8xf32>
  // CHECK-NOT: llm.group
  return %next : tensor<?x8xf32>
}
llm.parameter @table : tensor<8x8xf32> from #llm.source<"table">
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">
llm.parameter @b : tensor<8xf32> from #llm.source<"b">

// -----

// Gemma's sandwich norms: the norm behind a projection takes the residual sum, and
// the embedding its scale. A constant is copied into its kernel, where its size is
// read from a tensor that the kernel has anyway.
// CHECK-LABEL: func.func @step
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32> {
  // CHECK-NOT: arith.constant
  %c0 = arith.constant 0 : index
  %t = tensor.dim %positions, %c0 : tensor<?xi32>
  %root = arith.constant dense<2.0> : tensor<f32>
  %scale = llm.broadcast %root sizes(%t) : tensor<f32> -> tensor<?x8xf32>
  %table = llm.weight @table : tensor<8x8xf32>
  %w = llm.weight @table : tensor<8x8xf32>
  %g = llm.weight @g : tensor<8xf32>
  // CHECK: %[[H:.*]] = llm.group "embedding"
  // CHECK: tensor.dim %arg0
  // CHECK: arith.mulf
  %e = llm.embedding %tokens, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %h = arith.mulf %e, %scale : tensor<?x8xf32>
  // CHECK: llm.group "linear"
  // CHECK-NEXT: llm.linear
  // CHECK-NEXT: llm.yield
  %y = llm.linear %h, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  // CHECK: llm.group "norm"
  // CHECK-NEXT: %[[N:.*]] = llm.rms_norm
  // CHECK-NEXT: arith.addf %[[H]], %[[N]]
  %n = llm.rms_norm %y, %g {eps = 1.0e-6 : f64} : tensor<?x8xf32>, tensor<8xf32> -> tensor<?x8xf32>
  %next = arith.addf %h, %n : tensor<?x8xf32>
  // CHECK-NOT: llm.group
  return %next : tensor<?x8xf32>
}
llm.parameter @table : tensor<8x8xf32> from #llm.source<"table">
llm.parameter @g : tensor<8xf32> from #llm.source<"g">

// -----

// A softcap of the logits is the epilogue of the last linear; rows are gathered in
// front of the last norm, although their number is read elsewhere too.
// CHECK-LABEL: func.func @step
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %cap = arith.constant dense<30.0> : tensor<f32>
  %w = llm.weight @w : tensor<8x8xf32>
  %h = llm.embedding %tokens, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  // CHECK: llm.group "norm"
  // CHECK-NEXT: llm.gather_rows
  // CHECK-NEXT: llm.rms_norm
  %last = llm.gather_rows %h, %rows : tensor<?x8xf32>, tensor<?xi32> -> tensor<?x8xf32>
  %r = tensor.dim %last, %c0 : tensor<?x8xf32>
  %caps = llm.broadcast %cap sizes(%r) : tensor<f32> -> tensor<?x8xf32>
  %n = llm.rms_norm %last {eps = 1.0e-6 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: llm.group "linear"
  // CHECK-NEXT: llm.linear
  // CHECK: arith.divf
  // CHECK-NEXT: math.tanh
  // CHECK-NEXT: arith.mulf
  // CHECK-NEXT: llm.yield
  %logits = llm.linear %n, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a = arith.divf %logits, %caps : tensor<?x8xf32>
  %b = math.tanh %a : tensor<?x8xf32>
  %c = arith.mulf %b, %caps : tensor<?x8xf32>
  // CHECK-NOT: llm.group
  return %c : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// Norms of query and key heads belong to the append, although the query's rotation
// comes after the append in program order. The attention that reads another layer's
// cache rotates its query by itself.
!kv = !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>
// CHECK-LABEL: func.func @step
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<1 x !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %tokens, %c0 : tensor<?xi32>
  %w = llm.weight @w : tensor<8x8xf32>
  %f = llm.weight @f : tensor<4xf32>
  %layer = llm.kv_layer %kv[0] : !llm.kv_cache<1 x !kv> -> !kv
  %cos, %sin = llm.rope_table %positions, %f {attention_scaling = 1.0 : f64} : tensor<?xi32>, tensor<4xf32> -> tensor<?x4xf32>
  %h = llm.embedding %tokens, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %q = llm.linear %h, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %k = llm.linear %h, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %qh = tensor.expand_shape %q [[0], [1, 2]] output_shape [%t, 1, 8] : tensor<?x8xf32> into tensor<?x1x8xf32>
  %kh = tensor.expand_shape %k [[0], [1, 2]] output_shape [%t, 1, 8] : tensor<?x8xf32> into tensor<?x1x8xf32>
  %kn = llm.rms_norm %kh {eps = 1.0e-6 : f64} : tensor<?x1x8xf32> -> tensor<?x1x8xf32>
  %kr = llm.rope half %kn, %cos, %sin : tensor<?x1x8xf32>, tensor<?x4xf32> -> tensor<?x1x8xf32>
  // CHECK: llm.group "rope_append"
  // CHECK: llm.rms_norm
  // CHECK: llm.kv_append
  // CHECK: llm.rms_norm
  // CHECK-NEXT: %[[Q:.*]] = llm.rope
  // CHECK-NEXT: llm.yield %[[Q]]
  llm.kv_append %kr, %kn, %layer, %batch : tensor<?x1x8xf32>, tensor<?x1x8xf32>, !kv
  %qn = llm.rms_norm %qh {eps = 1.0e-6 : f64} : tensor<?x1x8xf32> -> tensor<?x1x8xf32>
  %qr = llm.rope half %qn, %cos, %sin : tensor<?x1x8xf32>, tensor<?x4xf32> -> tensor<?x1x8xf32>
  // CHECK: llm.group "attention"
  %o = llm.paged_attention %qr, %layer, %batch {scale = 1.0 : f64, causal} : tensor<?x1x8xf32>, !kv -> tensor<?x1x8xf32>
  // CHECK: llm.group "rope_append"
  // CHECK-NEXT: llm.rope
  %qr2 = llm.rope half %o, %cos, %sin : tensor<?x1x8xf32>, tensor<?x4xf32> -> tensor<?x1x8xf32>
  // CHECK: llm.group "attention" -> tensor<?x8xf32>
  // CHECK-NEXT: llm.paged_attention
  // CHECK-NEXT: tensor.collapse_shape
  %o2 = llm.paged_attention %qr2, %layer, %batch {scale = 1.0 : f64, causal} : tensor<?x1x8xf32>, !kv -> tensor<?x1x8xf32>
  %c = tensor.collapse_shape %o2 [[0], [1, 2]] : tensor<?x1x8xf32> into tensor<?x8xf32>
  // CHECK-NOT: llm.group
  return %c : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">
llm.parameter @f : tensor<4xf32> = dense<1.0> : tensor<4xf32>

// -----

// A sum without an epilogue is computed by the norm that reads it; a conversion of a
// value with several readers is a second result of its kernel.
// CHECK-LABEL: func.func @step
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32> {
  %w = llm.weight @w : tensor<8x8xf32>
  // CHECK: %[[H:.*]]:2 = llm.group "embedding" -> tensor<?x8xf32>, tensor<?x8xbf16>
  %h = llm.embedding %tokens, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %narrow = arith.truncf %h : tensor<?x8xf32> to tensor<?x8xbf16>
  %y = llm.linear %narrow, %w : tensor<?x8xbf16>, tensor<8x8xf32> -> tensor<?x8xf32>
  %z = llm.linear %y, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %p = llm.linear %z, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  // CHECK: %[[N:.*]]:2 = llm.group "norm"
  // CHECK-NEXT: %[[SUM:.*]] = arith.addf
  // CHECK-NEXT: llm.rms_norm %[[SUM]]
  %sum = arith.addf %z, %h : tensor<?x8xf32>
  %n = llm.rms_norm %sum {eps = 1.0e-6 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: llm.group "linear"
  // CHECK: arith.addf %[[N]]#0
  %last = llm.linear %n, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %next = arith.addf %sum, %last : tensor<?x8xf32>
  // CHECK: llm.group "elementwise"
  // CHECK-NEXT: arith.mulf
  %product = arith.mulf %next, %p : tensor<?x8xf32>
  // CHECK-NOT: llm.group
  return %product : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// A norm makes codes and scales of its rows as further results; rows of a linear, of
// which a kernel has pieces, are quantized by a kernel of their own. A quantized
// linear has the epilogue of any linear.
// CHECK-LABEL: func.func @step
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32> {
  %w = llm.weight @w : tensor<8x8xf32>
  %c = llm.weight @c : tensor<8x8xf8E4M3FN>
  %s = llm.weight @s : tensor<8x1xf32>
  %h = llm.embedding %tokens, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  // CHECK: %[[N:.*]]:2 = llm.group "norm" -> tensor<?x1xf32>, tensor<?x8xf8E4M3FN>
  // CHECK-NEXT: llm.rms_norm
  // CHECK-NEXT: llm.dynamic_scale
  // CHECK-NEXT: llm.quantize
  %n = llm.rms_norm %h {eps = 1.0e-6 : f64} : tensor<?x8xf32> -> tensor<?x8xbf16>
  %ns = llm.dynamic_scale %n {group = 0 : i64, limit = 448.0 : f64} : tensor<?x8xbf16> -> tensor<?x1xf32>
  %nc = llm.quantize %n, %ns : tensor<?x8xbf16>, tensor<?x1xf32> -> tensor<?x8xf8E4M3FN>
  // CHECK: %[[A:.*]] = llm.group "linear" -> tensor<?x8xbf16>
  // CHECK-NEXT: llm.scaled_linear %[[N]]#1, %{{.*}} input_scale(%[[N]]#0
  // CHECK-NEXT: llm.activation
  %y = llm.scaled_linear %nc, %c weight_scale(%s : tensor<8x1xf32>) input_scale(%ns : tensor<?x1xf32>) : tensor<?x8xf8E4M3FN>, tensor<8x8xf8E4M3FN> -> tensor<?x8xf32>
  %a = llm.activation silu %y : tensor<?x8xf32> -> tensor<?x8xbf16>
  // CHECK: %[[E:.*]]:2 = llm.group "elementwise" -> tensor<?x1xf32>, tensor<?x8xf8E4M3FN>
  // CHECK-NEXT: llm.dynamic_scale %[[A]]
  // CHECK-NEXT: llm.quantize %[[A]]
  %as = llm.dynamic_scale %a {group = 0 : i64, limit = 448.0 : f64} : tensor<?x8xbf16> -> tensor<?x1xf32>
  %ac = llm.quantize %a, %as : tensor<?x8xbf16>, tensor<?x1xf32> -> tensor<?x8xf8E4M3FN>
  // CHECK: llm.group "linear"
  // CHECK-NEXT: llm.scaled_linear %[[E]]#1, %{{.*}} input_scale(%[[E]]#0
  // CHECK-NEXT: arith.addf
  %z = llm.scaled_linear %ac, %c weight_scale(%s : tensor<8x1xf32>) input_scale(%as : tensor<?x1xf32>) : tensor<?x8xf8E4M3FN>, tensor<8x8xf8E4M3FN> -> tensor<?x8xf32>
  %r = arith.addf %h, %z : tensor<?x8xf32>
  // CHECK-NOT: llm.group
  return %r : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">
llm.parameter @c : tensor<8x8xf8E4M3FN> from #llm.codes<#llm.source<"c">, to = f8E4M3FN, group = 0>
llm.parameter @s : tensor<8x1xf32> from #llm.scales<#llm.source<"c">, to = f8E4M3FN, group = 0>
