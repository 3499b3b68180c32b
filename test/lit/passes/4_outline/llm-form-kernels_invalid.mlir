// RUN: llmc-opt --llm-form-kernels --split-input-file --verify-diagnostics %s

// Dense attention is no kernel: the step must be paged first.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x1x8xf32> {
  %w = llm.weight @w : tensor<8x8xf32>
  %h = llm.embedding %tokens, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %c0 = arith.constant 0 : index
  %t = tensor.dim %tokens, %c0 : tensor<?xi32>
  %q = tensor.expand_shape %h [[0], [1, 2]] output_shape [%t, 1, 8] : tensor<?x8xf32> into tensor<?x1x8xf32>
  // expected-error @below {{found 'llm.attention' in}}
  %o = llm.attention %q, %q, %q {scale = 1.0 : f64, causal} : tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?x1x8xf32> -> tensor<?x1x8xf32>
  return %o : tensor<?x1x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// A rotation that leads to no cache and no attention has no kernel.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x1x8xf32> {
  %w = llm.weight @w : tensor<8x1x8xf32>
  %f = llm.weight @f : tensor<4xf32>
  %cos, %sin = llm.rope_table %positions, %f {attention_scaling = 1.0 : f64} : tensor<?xi32>, tensor<4xf32> -> tensor<?x4xf32>
  // expected-error @below {{found 'llm.rope' in}}
  %q = llm.rope half %w, %cos, %sin : tensor<8x1x8xf32>, tensor<?x4xf32> -> tensor<?x1x8xf32>
  return %q : tensor<?x1x8xf32>
}
llm.parameter @w : tensor<8x1x8xf32> from #llm.source<"w">
llm.parameter @f : tensor<4xf32> = dense<1.0> : tensor<4xf32>

// -----

// expected-error @below {{expected a function @step}}
module {
}

// -----

// expected-error @below {{expected the paged form of @step, which takes 5 arguments, or 11 when it samples; got 2}}
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) {
  return
}

// -----

// expected-error @below {{expected argument #2 of @step (logit_rows) to be 'tensor<?xi32>', got 'tensor<?xi64>'}}
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi64>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) {
  return
}

// -----

// expected-error @below {{expected argument #3 of @step to be !llm.batch, got 'tensor<?xi32>'}}
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: tensor<?xi32>, %kv: !llm.kv_cache<>) {
  return
}

// -----

// expected-error @below {{expected @step to have one block}}
func.func private @step(tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, !llm.batch, !llm.kv_cache<>)
