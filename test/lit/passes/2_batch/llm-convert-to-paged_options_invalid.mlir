// RUN: llmc-opt %s --llm-convert-to-paged=block-size=48 --verify-diagnostics

// expected-error @+1 {{expected block-size to be a power of two, found 48; 16, 32, 64 and 128 are usual}}
module {
  func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?xi32> {
    return %tokens : tensor<?xi32>
  }
}
