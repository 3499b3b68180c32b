// RUN: llmc-opt %s --convert-llm-to-linalg --split-input-file --verify-diagnostics

func.func @step(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  // expected-error @below {{over 4 ranks has no lowering to linalg; only ranks = 1 runs in one process}}
  // expected-error @below {{failed to legalize}}
  %y = llm.all_reduce %x {ranks = 4 : i64} : tensor<?x16xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

llm.parameter @w : tensor<16x16xbf16> from #llm.source<"w">
func.func private @part() -> tensor<16x16xbf16> {
  // expected-error @below {{is in a private function; pass weights to it as operands}}
  %w = llm.weight @w : tensor<16x16xbf16>
  return %w : tensor<16x16xbf16>
}
