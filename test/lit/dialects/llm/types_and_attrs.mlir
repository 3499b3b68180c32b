// RUN: llmc-opt %s | FileCheck %s
// RUN: llmc-opt %s | llmc-opt | FileCheck %s

// CHECK: func.func private @batch(!llm.batch)
func.func private @batch(!llm.batch)

// CHECK: func.func private @kv(!llm.kv<heads = 8, head_dim = 128, v_head_dim = 128, block = 64, element = f8E4M3FN>)
func.func private @kv(!llm.kv<heads = 8, head_dim = 128, v_head_dim = 128, block = 64, element = f8E4M3FN>)

// Equal layers in a row are one entry, however they were written.
// CHECK: func.func private @cache(!llm.kv_cache<3 x !llm.kv<heads = 1, {{[^>]*}}>, 1 x !llm.kv<heads = 2, {{[^>]*}}>, 1 x !llm.kv<heads = 1, {{[^>]*}}>>)
func.func private @cache(!llm.kv_cache<
  1 x !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = i8>,
  2 x !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = i8>,
  1 x !llm.kv<heads = 2, head_dim = 8, v_head_dim = 0, block = 16, element = i8>,
  1 x !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = i8>>)

// CHECK: func.func private @no_layers(!llm.kv_cache<>)
func.func private @no_layers(!llm.kv_cache<>)

// Recipes nest.
// CHECK: llm.parameter @recipe : tensor<8x4xf32> from
// CHECK-SAME: #llm.concat<[
// CHECK-SAME: #llm.slice<#llm.source<"qkv">, dim = 0, begin = 0, end = 2>,
// CHECK-SAME: #llm.transpose<#llm.source<"k">>,
// CHECK-SAME: #llm.interleave<[#llm.source<"gate">, #llm.source<"up">], dim = 0, block = 8>,
// CHECK-SAME: #llm.offset<#llm.source<"norm">, 1.000000e+00 : f32>], dim = 0>
llm.parameter @recipe : tensor<8x4xf32> from #llm.concat<[
  #llm.slice<#llm.source<"qkv">, dim = 0, begin = 0, end = 2>,
  #llm.transpose<#llm.source<"k">>,
  #llm.interleave<[#llm.source<"gate">, #llm.source<"up">], dim = 0, block = 8>,
  #llm.offset<#llm.source<"norm">, 1.0 : f32>], dim = 0>

// CHECK: llm.parameter @codes : tensor<8x4xi4> from #llm.codes<#llm.source<"w">, to = i4, group = 2>
llm.parameter @codes : tensor<8x4xi4> from #llm.codes<#llm.source<"w">, to = i4, group = 2>
// CHECK: llm.parameter @codes_beside_zeros : tensor<8x4xi4> from #llm.codes<#llm.source<"w">, to = i4, group = 2, zeros = true>
llm.parameter @codes_beside_zeros : tensor<8x4xi4> from #llm.codes<#llm.source<"w">, to = i4, group = 2, zeros = true>
// CHECK: llm.parameter @zeros : tensor<8x2xi8> from #llm.zeros<#llm.source<"w">, to = i4, group = 2>
llm.parameter @zeros : tensor<8x2xi8> from #llm.zeros<#llm.source<"w">, to = i4, group = 2>
// CHECK: llm.parameter @scales : tensor<8x2xf32> from #llm.scales<#llm.source<"w">, to = i4, group = 2>
llm.parameter @scales : tensor<8x2xf32> from #llm.scales<#llm.source<"w">, to = i4, group = 2>

// CHECK: func.func private @quantized()
// CHECK-SAME: a = #llm.quantization<weight = f8E4M3FN, group = 0, input = f8E4M3FN>
// CHECK-SAME: b = #llm.quantization<weight = i8, group = 64>
// CHECK-SAME: c = #llm.quantization<weight = i4, group = 128, zeros = true>
func.func private @quantized() attributes {
  a = #llm.quantization<weight = f8E4M3FN, group = 0, input = f8E4M3FN>,
  b = #llm.quantization<weight = i8, group = 64>,
  c = #llm.quantization<weight = i4, group = 128, zeros = true>}

// The attributes of enumerations, as generic forms of ops have them.
// CHECK: func.func private @enums() attributes {
// CHECK-SAME: activation = #llm.activation_kind<gelu_quick>
// CHECK-SAME: layout = #llm.glu_layout<split>
// CHECK-SAME: reduce = #llm.reduce_kind<mean>
// CHECK-SAME: style = #llm.rope_style<interleaved>
func.func private @enums() attributes {
  activation = #llm.activation_kind<gelu_quick>, layout = #llm.glu_layout<split>,
  reduce = #llm.reduce_kind<mean>, style = #llm.rope_style<interleaved>}
