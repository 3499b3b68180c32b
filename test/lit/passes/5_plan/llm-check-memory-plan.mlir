// RUN: llmc-opt --llm-check-memory-plan %s | FileCheck %s

// A sound plan passes unchanged: %b takes the place of nothing, %c that of %a by a
// tie, %d that of %b, which is dead. The workspace lies behind them.
// CHECK-LABEL: func.func @step
// CHECK: tied = array<i64: 0, 2>
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32>
    attributes {llm.arena_bytes = 1280 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  %a = llm.launch @embedding_0(%tokens, %w) {offsets = array<i64: 0>} : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %b = llm.launch @norm_0(%a) {offsets = array<i64: 512>, workspace_offset = 1024 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %c = llm.launch @linear_0(%b, %w, %a) {offsets = array<i64: 0>, tied = array<i64: 0, 2>} : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d = llm.launch @norm_0(%c) {offsets = array<i64: 512>, workspace_offset = 1024 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %d : tensor<?x8xf32>
}
llm.kernel @embedding_0(%x: tensor<?xi32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> attributes {anchor = "embedding"} {
  %0 = llm.embedding %x, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.kernel @norm_0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "norm", workspace = 64 : i64} {
  %0 = llm.rms_norm %x {eps = 1.0e-5 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.kernel @linear_0(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %h: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "linear"} {
  %0 = llm.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %1 = arith.addf %0, %h : tensor<?x8xf32>
  llm.yield %1 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">
