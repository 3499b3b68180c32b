// RUN: llmc-opt %s --llm-lower-quantization --verify-diagnostics

llm.parameter @w : tensor<8x8xbf16> from #llm.source<"w"> layout #llm.panels<rows = 8, group = 1>
func.func @step(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %w = llm.weight @w : tensor<8x8xbf16>
  // expected-error @below {{expected a weight that is made from the checkpoint and has no layout yet; quantize before layouts are chosen}}
  %y = llm.linear %x, %w {llm.quantization = #llm.quantization<weight = i8, group = 0>} : tensor<?x8xf32>, tensor<8x8xbf16> -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
