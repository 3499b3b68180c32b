// RUN: llmc-opt %s --split-input-file --llm-convert-to-paged --verify-diagnostics

// expected-error @+1 {{expected a function @step, found none; this pass takes the module of a frontend}}
module {
}

// -----

// expected-error @+1 {{expected the dense @step(tokens, positions), found 3 arguments; llm-convert-to-paged runs once, on a dense module}}
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?xi32> {
  return %tokens : tensor<?xi32>
}

// -----

// expected-error @+1 {{expected a decoder, found no llm.attention; run the raise passes first, or register the model's attention with the frontend}}
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?xi32> {
  return %tokens : tensor<?xi32>
}

// -----

func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xf32>) -> tensor<?x1x1xf32> {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %tokens, %c0 : tensor<?xi32>
  %k = tensor.expand_shape %positions [[0, 1, 2]] output_shape [%t, 1, 1] : tensor<?xf32> into tensor<?x1x1xf32>
  // expected-error-re @+1 {{expected causal attention, found attention to later tokens in {{.*}}; a KV cache holds earlier tokens only, so encoders cannot be compiled}}
  %o = llm.attention %k, %k, %k {scale = 0.5 : f64} : tensor<?x1x1xf32>, tensor<?x1x1xf32>, tensor<?x1x1xf32> -> tensor<?x1x1xf32>
  return %o : tensor<?x1x1xf32>
}
