// RUN: llmc-opt %s --split-input-file --llm-verify-contract --verify-diagnostics

// expected-error @+1 {{expected a function @step, the entry of every model, found none; the frontend must name its function so}}
module {
  func.func private @forward()
}

// -----

// expected-error @+1 {{expected @step to be (tensor<?xi32>, tensor<?xi32>) -> tensor<?xVxf32>, from token ids and positions to logits, found '(tensor<1x?xi32>, tensor<1x?xi32>) -> tensor<1x?x16xf32>'; the frontend must fold the batch dimension away}}
func.func private @step(tensor<1x?xi32>, tensor<1x?xi32>) -> tensor<1x?x16xf32>

// -----

func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x16xf32> {
  %c4 = arith.constant 4 : index
  // expected-error @+1 {{expected only ops of a dense llm graph, found 'tensor.empty' in}}
  %y = tensor.empty(%c4) : tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

llm.parameter @w : tensor<16x8xbf16> from #llm.source<"w">
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x16xf32> {
  // expected-error @+1 {{expected tensors of f32, i32 or i1 without encoding, found 'tensor<16x8xbf16>' in}}
  %w = llm.weight @w : tensor<16x8xbf16>
  %h = llm.embedding %tokens, %w : tensor<?xi32>, tensor<16x8xbf16> -> tensor<?x8xf32>
  %y = llm.linear %h, %w : tensor<?x8xf32>, tensor<16x8xbf16> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

// Rows are chosen, and weights quantized, by later passes only.
llm.parameter @w : tensor<16x8xf32> from #llm.source<"w">
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x16xf32> {
  %w = llm.weight @w : tensor<16x8xf32>
  %h = llm.embedding %tokens, %w : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  // expected-error @+1 {{expected only ops of a dense llm graph, found 'llm.gather_rows' in}}
  %r = llm.gather_rows %h, %tokens : tensor<?x8xf32>, tensor<?xi32> -> tensor<?x8xf32>
  // expected-error @+1 {{expected only ops of a dense llm graph, found 'llm.dynamic_scale' in}}
  %s = llm.dynamic_scale %r {group = 0 : i64, limit = 448.0 : f64} : tensor<?x8xf32> -> tensor<?x1xf32>
  %y = llm.linear %r, %w : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
