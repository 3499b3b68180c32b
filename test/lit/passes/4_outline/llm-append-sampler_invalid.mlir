// RUN: llmc-opt --llm-append-sampler --split-input-file --verify-diagnostics %s

// A step that samples already.
// expected-error @below {{expected a step that takes 5 arguments and returns the logits alone, got 5 arguments and 2 results}}
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> (tensor<?xi32>, tensor<?xi32>) {
  return %tokens, %rows : tensor<?xi32>, tensor<?xi32>
}

// -----

// expected-error @below {{expected float32 logits of rank 2, got 'tensor<?xi32>'}}
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?xi32> {
  return %tokens : tensor<?xi32>
}
