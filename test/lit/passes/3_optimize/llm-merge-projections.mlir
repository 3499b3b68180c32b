// RUN: llmc-opt %s --split-input-file --llm-merge-projections=glu-block=2 | FileCheck %s

// Queries, keys and values, with biases, in this order whatever the program's; the
// values' path has no rope. Parts are gone.
// CHECK: llm.parameter @attn.qkv_proj.weight : tensor<16x8xf32> from #llm.concat<[#llm.source<"q">, #llm.source<"k">, #llm.source<"v">], dim = 0>
// CHECK-NEXT: llm.parameter @attn.qkv_proj.bias : tensor<16xf32> from #llm.concat<[#llm.source<"qb">, #llm.source<"kb">, #llm.source<"vb">], dim = 0>
// CHECK-NOT: llm.parameter
// CHECK-LABEL: func.func @qkv
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf32>
// CHECK: %[[Y:.*]] = llm.linear %[[X]], %{{.*}} bias(%{{.*}}) : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16xf32> -> tensor<?x16xf32>
// CHECK-DAG: %[[Q:.*]] = tensor.extract_slice %[[Y]][0, 0] [%{{.*}}, 8] [1, 1]
// CHECK-DAG: %[[K:.*]] = tensor.extract_slice %[[Y]][0, 8] [%{{.*}}, 4] [1, 1]
// CHECK-DAG: %[[V:.*]] = tensor.extract_slice %[[Y]][0, 12] [%{{.*}}, 4] [1, 1]
// CHECK: %[[VH:.*]] = tensor.expand_shape %[[V]]
// CHECK: %[[QH:.*]] = tensor.expand_shape %[[Q]]
// CHECK: %[[KH:.*]] = tensor.expand_shape %[[K]]
// CHECK: llm.attention %{{.*}}, %[[KH]], %[[VH]]
llm.parameter @attn.q_proj.weight : tensor<8x8xf32> from #llm.source<"q">
llm.parameter @attn.k_proj.weight : tensor<4x8xf32> from #llm.source<"k">
llm.parameter @attn.v_proj.weight : tensor<4x8xf32> from #llm.source<"v">
llm.parameter @attn.q_proj.bias : tensor<8xf32> from #llm.source<"qb">
llm.parameter @attn.k_proj.bias : tensor<4xf32> from #llm.source<"kb">
llm.parameter @attn.v_proj.bias : tensor<4xf32> from #llm.source<"vb">
func.func @qkv(%x: tensor<?x8xf32>, %cos: tensor<?x2xf32>, %sin: tensor<?x2xf32>, %t: index) -> tensor<?x2x4xf32> {
  %wv = llm.weight @attn.v_proj.weight : tensor<4x8xf32>
  %bv = llm.weight @attn.v_proj.bias : tensor<4xf32>
  %v = llm.linear %x, %wv bias(%bv) : tensor<?x8xf32>, tensor<4x8xf32>, tensor<4xf32> -> tensor<?x4xf32>
  %vh = tensor.expand_shape %v [[0], [1, 2]] output_shape [%t, 1, 4] : tensor<?x4xf32> into tensor<?x1x4xf32>
  %wq = llm.weight @attn.q_proj.weight : tensor<8x8xf32>
  %bq = llm.weight @attn.q_proj.bias : tensor<8xf32>
  %q = llm.linear %x, %wq bias(%bq) : tensor<?x8xf32>, tensor<8x8xf32>, tensor<8xf32> -> tensor<?x8xf32>
  %qh = tensor.expand_shape %q [[0], [1, 2]] output_shape [%t, 2, 4] : tensor<?x8xf32> into tensor<?x2x4xf32>
  %qr = llm.rope half %qh, %cos, %sin : tensor<?x2x4xf32>, tensor<?x2xf32> -> tensor<?x2x4xf32>
  %wk = llm.weight @attn.k_proj.weight : tensor<4x8xf32>
  %bk = llm.weight @attn.k_proj.bias : tensor<4xf32>
  %k = llm.linear %x, %wk bias(%bk) : tensor<?x8xf32>, tensor<4x8xf32>, tensor<4xf32> -> tensor<?x4xf32>
  %kh = tensor.expand_shape %k [[0], [1, 2]] output_shape [%t, 1, 4] : tensor<?x4xf32> into tensor<?x1x4xf32>
  %o = llm.attention %qr, %kh, %vh {scale = 0.5 : f64, causal} : tensor<?x2x4xf32>, tensor<?x1x4xf32>, tensor<?x1x4xf32> -> tensor<?x2x4xf32>
  return %o : tensor<?x2x4xf32>
}

// -----

// Gate and up are interleaved in blocks; the down projection has another input.
// CHECK: llm.parameter @mlp.gate_up_proj.weight : tensor<16x8xf32> from #llm.interleave<[#llm.source<"g">, #llm.source<"u">], dim = 0, block = 2>
// CHECK-NEXT: llm.parameter @mlp.down_proj.weight
// CHECK-LABEL: func.func @gate_up
// CHECK: %[[Y:.*]] = llm.linear %{{.*}} -> tensor<?x16xf32>
// CHECK-NEXT: llm.packed_glu silu interleaved %[[Y]] {block = 2 : i64} : tensor<?x16xf32> -> tensor<?x8xf32>
llm.parameter @mlp.gate_proj.weight : tensor<8x8xf32> from #llm.source<"g">
llm.parameter @mlp.up_proj.weight : tensor<8x8xf32> from #llm.source<"u">
llm.parameter @mlp.down_proj.weight : tensor<8x8xf32> from #llm.source<"d">
func.func @gate_up(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %wg = llm.weight @mlp.gate_proj.weight : tensor<8x8xf32>
  %wu = llm.weight @mlp.up_proj.weight : tensor<8x8xf32>
  %wd = llm.weight @mlp.down_proj.weight : tensor<8x8xf32>
  %g = llm.linear %x, %wg : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %u = llm.linear %x, %wu : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %m = llm.glu silu %g, %u : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %y = llm.linear %m, %wd : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// A checkpoint that stores [up; gate] as one matrix (the gate is the second half).
// CHECK: llm.parameter @mlp.gate_up_proj.weight.interleaved : tensor<16x8xf32>
// CHECK-SAME: from #llm.interleave<[#llm.slice<#llm.source<"gu">, dim = 0, begin = 8, end = 16>, #llm.slice<#llm.source<"gu">, dim = 0, begin = 0, end = 8>], dim = 0, block = 2>
// CHECK-LABEL: func.func @merged_gate_up
// CHECK: %[[Y:.*]] = llm.linear %{{.*}} -> tensor<?x16xf32>
// CHECK: llm.packed_glu gelu_tanh interleaved %[[Y]] {block = 2 : i64}
llm.parameter @mlp.gate_up_proj.weight : tensor<16x8xf32> from #llm.source<"gu">
func.func @merged_gate_up(%x: tensor<?x8xf32>, %t: index) -> tensor<?x8xf32> {
  %w = llm.weight @mlp.gate_up_proj.weight : tensor<16x8xf32>
  %gu = llm.linear %x, %w : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  %u = tensor.extract_slice %gu[0, 0] [%t, 8] [1, 1] : tensor<?x16xf32> to tensor<?x8xf32>
  %g = tensor.extract_slice %gu[0, 8] [%t, 8] [1, 1] : tensor<?x16xf32> to tensor<?x8xf32>
  %m = llm.glu gelu_tanh %g, %u : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return %m : tensor<?x8xf32>
}

// -----

// Not merged: one has a bias, or the projection is read by something else too.
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-2: llm.linear %{{.*}} -> tensor<?x8xf32>
// CHECK: llm.glu
llm.parameter @g : tensor<8x8xf32> from #llm.source<"g">
llm.parameter @u : tensor<8x8xf32> from #llm.source<"u">
llm.parameter @b : tensor<8xf32> from #llm.source<"b">
func.func @apart(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %wg = llm.weight @g : tensor<8x8xf32>
  %wu = llm.weight @u : tensor<8x8xf32>
  %b = llm.weight @b : tensor<8xf32>
  %g = llm.linear %x, %wg bias(%b) : tensor<?x8xf32>, tensor<8x8xf32>, tensor<8xf32> -> tensor<?x8xf32>
  %u = llm.linear %x, %wu : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %m = llm.glu silu %g, %u : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return %m : tensor<?x8xf32>
}

// -----

// Of gate and up only one is to be quantized: they stay apart. Where both are, so is
// the merged linear.
// CHECK-LABEL: func.func @quantized
// CHECK: llm.linear %{{.*}}, %{{.*}} {llm.quantization = #llm.quantization<weight = i8, group = 0>} : tensor<?x8xf32>, tensor<8x8xf32>
// CHECK: llm.linear %{{[^{]*}} : tensor<?x8xf32>, tensor<8x8xf32>
// CHECK: llm.glu
// CHECK: llm.linear %{{.*}} {llm.quantization = #llm.quantization<weight = i8, group = 0>} : tensor<?x8xf32>, tensor<16x8xf32>
// CHECK: llm.packed_glu
llm.parameter @gate : tensor<8x8xf32> from #llm.source<"g">
llm.parameter @up : tensor<8x8xf32> from #llm.source<"u">
func.func @quantized(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %g = llm.weight @gate : tensor<8x8xf32>
  %u = llm.weight @up : tensor<8x8xf32>
  %a = llm.linear %x, %g {llm.quantization = #llm.quantization<weight = i8, group = 0>} : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %b = llm.linear %x, %u : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %y = llm.glu silu %a, %b : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %c = llm.linear %x, %g {llm.quantization = #llm.quantization<weight = i8, group = 0>} : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %d = llm.linear %x, %u {llm.quantization = #llm.quantization<weight = i8, group = 0>} : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %z = llm.glu silu %c, %d : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return %y, %z : tensor<?x8xf32>, tensor<?x8xf32>
}
