// RUN: llmc-opt --llm-export-plan --split-input-file --verify-diagnostics %s

// The plan comes first.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32>
    attributes {llm.arena_bytes = 1024 : i64, llm.arena_peak = 1024 : i64,
                llm.arena_lower_bound = 1024 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  // expected-error @below {{has no arena offsets; run llm-plan-memory first}}
  %a = llm.launch @embedding_0(%tokens, %w) : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  return %a : tensor<?x8xf32>
}
llm.kernel @embedding_0(%x: tensor<?xi32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> attributes {anchor = "embedding"} {
  %0 = llm.embedding %x, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// An output must be a buffer.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<8x8xf32>
    attributes {llm.arena_bytes = 1024 : i64, llm.arena_peak = 1024 : i64,
                llm.arena_lower_bound = 1024 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  // expected-error @below {{expected the output logits to be the result of a launch}}
  return %w : tensor<8x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// Logits and next tokens are all that a step returns.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
    attributes {llm.arena_bytes = 1024 : i64, llm.arena_peak = 1024 : i64,
                llm.arena_lower_bound = 1024 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  %a = llm.launch @embedding_0(%tokens, %w) {offsets = array<i64: 0>} : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  // expected-error @below {{expected @step to return logits and maybe next tokens, got 3 values}}
  return %a, %a, %a : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}
llm.kernel @embedding_0(%x: tensor<?xi32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> attributes {anchor = "embedding"} {
  %0 = llm.embedding %x, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// A type that the engine format cannot name.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?xf64>
    attributes {llm.arena_bytes = 1024 : i64, llm.arena_peak = 1024 : i64,
                llm.arena_lower_bound = 1024 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  // expected-error @below {{the engine format has no name for the type 'f64'}}
  %a = llm.launch @elementwise_0(%tokens) {offsets = array<i64: 0>} : (tensor<?xi32>) -> tensor<?xf64>
  return %a : tensor<?xf64>
}
llm.kernel @elementwise_0(%x: tensor<?xi32>) -> tensor<?xf64> attributes {anchor = "elementwise"} {
  %0 = arith.sitofp %x : tensor<?xi32> to tensor<?xf64>
  llm.yield %0 : tensor<?xf64>
}

// -----

// The runtime has one pool: its blocks are of one size.
// expected-error @below {{expected one block size in all layers of the cache, got 16 and 32}}
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<1 x !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>, 1 x !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 32, element = f32>>) -> tensor<?x8xf32>
    attributes {llm.arena_bytes = 1024 : i64, llm.arena_peak = 1024 : i64,
                llm.arena_lower_bound = 1024 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  %a = llm.launch @embedding_0(%tokens, %w) {offsets = array<i64: 0>} : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  return %a : tensor<?x8xf32>
}
llm.kernel @embedding_0(%x: tensor<?xi32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> attributes {anchor = "embedding"} {
  %0 = llm.embedding %x, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// A kernel cannot take the whole cache.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?xi32>
    attributes {llm.arena_bytes = 1024 : i64, llm.arena_peak = 1024 : i64,
                llm.arena_lower_bound = 1024 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  // expected-error @below {{cannot pass a value of type '!llm.kv_cache<>' to @elementwise_0}}
  %a = llm.launch @elementwise_0(%tokens, %kv) {offsets = array<i64: 0>} : (tensor<?xi32>, !llm.kv_cache<>) -> tensor<?xi32>
  return %a : tensor<?xi32>
}
llm.kernel @elementwise_0(%x: tensor<?xi32>, %kv: !llm.kv_cache<>) -> tensor<?xi32> attributes {anchor = "elementwise"} {
  %0 = arith.addi %x, %x : tensor<?xi32>
  llm.yield %0 : tensor<?xi32>
}
