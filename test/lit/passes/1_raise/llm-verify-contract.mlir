// RUN: llmc-opt %s --llm-verify-contract | FileCheck %s

// A dense step of rows in float32 passes unchanged.
// CHECK-LABEL: func.func @step
// CHECK: llm.embedding
// CHECK: math.tanh
// CHECK: llm.linear
llm.parameter @embed : tensor<16x8xf32> from #llm.source<"embed">
llm.parameter @inv_freq : tensor<4xf32> = dense<1.0> : tensor<4xf32>
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x16xf32> {
  %w = llm.weight @embed : tensor<16x8xf32>
  %h = llm.embedding %tokens, %w : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %a = math.tanh %h : tensor<?x8xf32>
  %y = llm.linear %a, %w : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
