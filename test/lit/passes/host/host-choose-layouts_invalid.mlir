// One embedding kernel for two tables, of which only one is shared with a linear.
// RUN: llmc-opt %s --split-input-file --host-choose-layouts --verify-diagnostics

llm.parameter @tied : tensor<75x64xbf16> from #llm.source<"tied">
llm.parameter @positions : tensor<75x64xbf16> from #llm.source<"positions">

llm.kernel @embed(%ids: tensor<?xi32>, %w: tensor<75x64xbf16>) -> tensor<?x64xf32> attributes {anchor = "embedding"} {
  %h = llm.embedding %ids, %w : tensor<?xi32>, tensor<75x64xbf16> -> tensor<?x64xf32>
  llm.yield %h : tensor<?x64xf32>
}
llm.kernel @head(%x: tensor<?x64xf32>, %w: tensor<75x64xbf16>) -> tensor<?x75xf32> attributes {anchor = "linear"} {
  %y = llm.linear %x, %w : tensor<?x64xf32>, tensor<75x64xbf16> -> tensor<?x75xf32>
  llm.yield %y : tensor<?x75xf32>
}
func.func @step(%tokens: tensor<?xi32>, %at: tensor<?xi32>) -> tensor<?x75xf32> {
  %w = llm.weight @tied : tensor<75x64xbf16>
  %p = llm.weight @positions : tensor<75x64xbf16>
  %h = llm.launch @embed(%tokens, %w) : (tensor<?xi32>, tensor<75x64xbf16>) -> tensor<?x64xf32>
  // expected-error @below {{reads @positions, whose layout differs from that of the kernel's other weights}}
  %q = llm.launch @embed(%at, %p) : (tensor<?xi32>, tensor<75x64xbf16>) -> tensor<?x64xf32>
  %y = llm.launch @head(%h, %w) : (tensor<?x64xf32>, tensor<75x64xbf16>) -> tensor<?x75xf32>
  return %y : tensor<?x75xf32>
}

// -----

// The panel kernel knows no zero points.
llm.parameter @w : tensor<64x64xi4> from #llm.codes<#llm.source<"w">, to = i4, group = 0>
llm.parameter @s : tensor<64x1xf32> from #llm.scales<#llm.source<"w">, to = i4, group = 0>
llm.kernel @k(%x: tensor<?x64xf32>, %w: tensor<64x64xi4>, %s: tensor<64x1xf32>) -> tensor<?x64xf32> attributes {anchor = "linear"} {
  %y = llm.scaled_linear %x, %w weight_scale(%s : tensor<64x1xf32>) weight_zero(%s : tensor<64x1xf32>) : tensor<?x64xf32>, tensor<64x64xi4> -> tensor<?x64xf32>
  llm.yield %y : tensor<?x64xf32>
}
func.func @step(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %w = llm.weight @w : tensor<64x64xi4>
  %s = llm.weight @s : tensor<64x1xf32>
  // expected-error @below {{reads the 4-bit codes @w in a kernel that cannot take them in panels; exclude it from quantization}}
  %y = llm.launch @k(%x, %w, %s) : (tensor<?x64xf32>, tensor<64x64xi4>, tensor<64x1xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
