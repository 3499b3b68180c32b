// RUN: llmc-opt --llm-plan-memory="max-num-tokens=16 max-batch-size=2" --split-input-file %s | FileCheck %s
// RUN: llmc-opt --pass-pipeline="builtin.module(llm-pipeline-outline,llm-pipeline-plan{max-num-tokens=2048 max-batch-size=32})" %S/../4_outline/Inputs/llama_step.mlir | FileCheck %s --check-prefix=LLAMA

// The residual stream of a Llama stays in place through all layers, and the arena is
// as small as the values that live at the widest launch.
// LLAMA-LABEL: func.func @step
// LLAMA-SAME: llm.arena_bytes = [[BYTES:[0-9]+]] : i64, llm.arena_lower_bound = [[BYTES]] : i64, llm.arena_peak = [[BYTES]] : i64
// LLAMA-SAME: llm.max_batch_size = 32 : i64, llm.max_num_tokens = 2048 : i64
// LLAMA: llm.launch @embedding_0({{.*}}) {offsets = array<i64: [[H:[0-9]+]]>}
// LLAMA-COUNT-4: offsets = array<i64: [[H]]>, tied = array<i64: 0, 2>
// LLAMA-NOT: tied

// Three values in a row use two places: the third takes that of the first. Rows of
// the result of a gather are logit rows, two at most.
// CHECK-LABEL: func.func @step
// CHECK-SAME: llm.arena_alignment = 256
// CHECK-SAME: llm.arena_bytes = 1024
// CHECK-SAME: llm.arena_lower_bound = 1024
// CHECK-SAME: llm.arena_peak = 1024
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32> {
  %w = llm.weight @w : tensor<8x8xf32>
  // CHECK: llm.launch @embedding_0({{.*}}) {offsets = array<i64: [[A:[0-9]+]]>}
  %a = llm.launch @embedding_0(%tokens, %w) : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  // CHECK: llm.launch @norm_0({{.*}}) {offsets = array<i64: [[B:[0-9]+]]>}
  %b = llm.launch @norm_0(%a) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: llm.launch @norm_0({{.*}}) {offsets = array<i64: [[A]]>}
  %c = llm.launch @norm_0(%b) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: llm.launch @norm_1({{.*}}) {offsets = array<i64: [[B]]>}
  %d = llm.launch @norm_1(%c, %rows) : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  return %d : tensor<?x8xf32>
}
llm.kernel @embedding_0(%x: tensor<?xi32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> attributes {anchor = "embedding"} {
  %0 = llm.embedding %x, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.kernel @norm_0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "norm"} {
  %0 = llm.rms_norm %x {eps = 1.0e-5 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.kernel @norm_1(%x: tensor<?x8xf32>, %r: tensor<?xi32>) -> tensor<?x8xf32> attributes {anchor = "norm"} {
  %0 = llm.gather_rows %x, %r : tensor<?x8xf32>, tensor<?xi32> -> tensor<?x8xf32>
  %1 = llm.rms_norm %0 {eps = 1.0e-5 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  llm.yield %1 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// A sum works in place when its operand dies there and is read element by element:
// not when it is read again (%a), is also the input of the product (%b), or is the
// result of @step.
// CHECK-LABEL: func.func @step
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32> {
  %w = llm.weight @w : tensor<8x8xf32>
  %a = llm.launch @embedding_0(%tokens, %w) : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %x = llm.launch @embedding_0(%tokens, %w) : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  // CHECK: llm.launch @linear_0
  // CHECK-NOT: tied
  // CHECK-SAME: {offsets = array<i64: {{[0-9]+}}>} :
  %b = llm.launch @linear_0(%x, %w, %a) : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: llm.launch @linear_0
  // CHECK-SAME: tied = array<i64: 0, 2>
  %c = llm.launch @linear_0(%x, %w, %a) : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: llm.launch @linear_0
  // CHECK-SAME: {offsets = array<i64: {{[0-9]+}}>} :
  %d = llm.launch @linear_0(%b, %w, %b) : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: llm.launch @linear_0
  // CHECK-SAME: tied = array<i64: 0, 2>
  %e = llm.launch @linear_0(%d, %w, %c) : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %e : tensor<?x8xf32>
}
llm.kernel @embedding_0(%x: tensor<?xi32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> attributes {anchor = "embedding"} {
  %0 = llm.embedding %x, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.kernel @linear_0(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %h: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "linear"} {
  %0 = llm.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %1 = arith.addf %0, %h : tensor<?x8xf32>
  llm.yield %1 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// Workspace lives for its launch, beside the operands and results of the launch.
// Two results have two offsets; buffers smaller than the alignment are rounded up,
// which the lower bound does not count.
// CHECK-LABEL: func.func @step
// CHECK-SAME: llm.arena_bytes = 1792
// CHECK-SAME: llm.arena_lower_bound = 1636
// CHECK-SAME: llm.arena_peak = 1792
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32> {
  %f = llm.weight @f : tensor<8xf32>
  // CHECK: llm.launch @rope_table_0
  // CHECK-SAME: offsets = array<i64: {{[0-9]+}}, {{[0-9]+}}>
  %cos, %sin = llm.launch @rope_table_0(%positions, %f) : (tensor<?xi32>, tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>)
  // CHECK: llm.launch @norm_0
  // CHECK-SAME: workspace_offset = {{[0-9]+}} : i64
  %n = llm.launch @norm_0(%cos) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %m = llm.launch @norm_0(%sin) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %n : tensor<?x8xf32>
}
llm.kernel @rope_table_0(%p: tensor<?xi32>, %f: tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) attributes {anchor = "rope_table"} {
  %cos, %sin = llm.rope_table %p, %f {attention_scaling = 1.0 : f64} : tensor<?xi32>, tensor<8xf32> -> tensor<?x8xf32>
  llm.yield %cos, %sin : tensor<?x8xf32>, tensor<?x8xf32>
}
llm.kernel @norm_0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "norm", workspace = 100 : i64} {
  %0 = llm.rms_norm %x {eps = 1.0e-5 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.parameter @f : tensor<8xf32> = dense<1.0> : tensor<8xf32>
