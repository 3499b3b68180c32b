// RUN: llmc-opt --split-input-file --verify-diagnostics %s

// expected-error @below {{expected positive heads and head_dim and a non-negative v_head_dim, got heads = 0, head_dim = 8, v_head_dim = 8}}
func.func private @kv(!llm.kv<heads = 0, head_dim = 8, v_head_dim = 8, block = 16, element = f32>)

// -----

// expected-error @below {{expected positive heads and head_dim and a non-negative v_head_dim, got heads = 1, head_dim = 8, v_head_dim = -1}}
func.func private @kv(!llm.kv<heads = 1, head_dim = 8, v_head_dim = -1, block = 16, element = f32>)

// -----

// expected-error @below {{expected block to be a power of two, got 24}}
func.func private @kv(!llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 24, element = f32>)

// -----

// expected-error @below {{expected a float or integer element type, got 'index'}}
func.func private @kv(!llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = index>)

// -----

// expected-error @below {{expected a positive number of layers}}
func.func private @cache(!llm.kv_cache<0 x !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>>)

// -----

// expected-error @below {{expected a weight recipe such as #llm.source<...>, got 1 : i64}}
llm.parameter @w : tensor<8xf32> from #llm.transpose<1 : i64>

// -----

// expected-error @below {{expected a weight recipe such as #llm.source<...>, got "w"}}
llm.parameter @w : tensor<8xf32> from #llm.offset<"w", 1.0 : f32>

// -----

// expected-error @below {{expected a weight recipe such as #llm.source<...>, got "w"}}
llm.parameter @w : tensor<8xf32> from #llm.concat<["w"], dim = 0>

// -----

// expected-error @+2 {{expected attribute value}}
// expected-error @below {{failed to parse Llm_InterleaveAttr parameter 'parts'}}
llm.parameter @w : tensor<8xf32> from #llm.interleave<[], dim = 0, block = 1>

// -----

// expected-error @below {{expected a dim of 0 or more, got -1}}
llm.parameter @w : tensor<8xf32> from #llm.concat<[#llm.source<"w">], dim = -1>

// -----

// expected-error @below {{expected a block of 1 or more, got 0}}
llm.parameter @w : tensor<8xf32> from #llm.interleave<[#llm.source<"w">], dim = 0, block = 0>

// -----

// expected-error @below {{expected a range with 0 <= begin < end, got [4, 4)}}
llm.parameter @w : tensor<8xf32> from #llm.slice<#llm.source<"w">, dim = 0, begin = 4, end = 4>

// -----

// expected-error @below {{expected rows and group of 1 or more, got 0 and 1}}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w"> layout #llm.panels<rows = 0, group = 1>

// -----

// expected-error @below {{expected codes of type f8E4M3FN, i8 or i4, got 'f32'}}
llm.parameter @w : tensor<8x8xf32> from #llm.codes<#llm.source<"w">, to = f32, group = 0>

// -----

// expected-error @below {{expected a group of 0 (the whole row) or more, got -1}}
llm.parameter @w : tensor<8x8xf32> from #llm.scales<#llm.source<"w">, to = i8, group = -1>

// -----

// expected-error @below {{expected a recipe of values, got #llm.codes<#llm.source<"w">, to = i8, group = 0>; quantize outermost}}
llm.parameter @w : tensor<8x8xi8> from #llm.transpose<#llm.codes<#llm.source<"w">, to = i8, group = 0>>

// -----

// expected-error @below {{expected input codes of the type of the weight's, 'f8E4M3FN', got 'i8'}}
func.func private @f() attributes {a = #llm.quantization<weight = f8E4M3FN, group = 0, input = i8>}

// -----

// expected-error @below {{expected codes of type i8 or i4, which can have zero points, got 'f8E4M3FN'}}
func.func private @f() attributes {a = #llm.quantization<weight = f8E4M3FN, group = 0, zeros = true>}

// -----

// expected-error @below {{expected codes of type i8 or i4, which can have zero points, got 'f8E4M3FN'}}
llm.parameter @z : tensor<8x1xi8> from #llm.zeros<#llm.source<"w">, to = f8E4M3FN, group = 0>

// -----

// expected-error @below {{expected a recipe of values, got #llm.zeros<#llm.source<"w">, to = i8, group = 0>; quantize outermost}}
llm.parameter @z : tensor<8x1xi8> from #llm.transpose<#llm.zeros<#llm.source<"w">, to = i8, group = 0>>
