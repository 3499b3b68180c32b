// RUN: llmc-opt %s --split-input-file --llm-select-logit-rows --verify-diagnostics

// expected-error @+1 {{expected the paged @step(tokens, positions, logit_rows, batch, kv) with logits as its result, found no @step; run llm-convert-to-paged first}}
module {
}

// -----

// expected-error @+1 {{found another signature; run llm-convert-to-paged first}}
module {
  func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?xi32> {
    return %tokens : tensor<?xi32>
  }
}
