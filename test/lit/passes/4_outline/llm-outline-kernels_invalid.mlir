// RUN: llmc-opt --llm-outline-kernels --split-input-file --verify-diagnostics %s

func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32> {
  %w = llm.weight @w : tensor<8x8xf32>
  // expected-error @below {{'llm.embedding' is in no group; run llm-form-kernels first}}
  %h = llm.embedding %tokens, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  return %h : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// expected-error @below {{expected a function @step}}
module {
}
