// RUN: llmc-opt %s --host-lower-linear --verify-diagnostics

// expected-error @below {{stores its weight as #llm.panels<rows = 24, group = 1>, which its body or the target's vectors do not allow}}
llm.kernel @k(%x: tensor<?x64xf32>, %w: tensor<48x64xbf16> {llm.layout = #llm.panels<rows = 24, group = 1>}) -> tensor<?x48xf32> attributes {anchor = "linear"} {
  %y = llm.linear %x, %w : tensor<?x64xf32>, tensor<48x64xbf16> -> tensor<?x48xf32>
  llm.yield %y : tensor<?x48xf32>
}
