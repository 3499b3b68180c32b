// Codes, scales and zero points lie in panels, pairs of 4-bit codes side by side.
// RUN: llmc-opt %s --host-choose-layouts | FileCheck %s

// CHECK: llm.parameter @w : {{.*}} layout #llm.panels<rows = 32, group = 2>
llm.parameter @w : tensor<64x64xi4> from #llm.codes<#llm.source<"w">, to = i4, group = 32>
// CHECK: llm.parameter @s : {{.*}} layout #llm.panels<rows = 32, group = 1>
llm.parameter @s : tensor<64x2xf32> from #llm.scales<#llm.source<"w">, to = i4, group = 32>
// CHECK: llm.parameter @z : {{.*}} layout #llm.panels<rows = 32, group = 1>
llm.parameter @z : tensor<64x2xi8> from #llm.zeros<#llm.source<"w">, to = i4, group = 32>
llm.kernel @k(%x: tensor<?x64xf32>, %w: tensor<64x64xi4>, %s: tensor<64x2xf32>, %z: tensor<64x2xi8>) -> tensor<?x64xf32> attributes {anchor = "linear"} {
  %y = llm.scaled_linear %x, %w weight_scale(%s : tensor<64x2xf32>) weight_zero(%z : tensor<64x2xi8>) : tensor<?x64xf32>, tensor<64x64xi4> -> tensor<?x64xf32>
  llm.yield %y : tensor<?x64xf32>
}
func.func @step(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %w = llm.weight @w : tensor<64x64xi4>
  %s = llm.weight @s : tensor<64x2xf32>
  %z = llm.weight @z : tensor<64x2xi8>
  %y = llm.launch @k(%x, %w, %s, %z) : (tensor<?x64xf32>, tensor<64x64xi4>, tensor<64x2xf32>, tensor<64x2xi8>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
