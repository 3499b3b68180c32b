// RUN: llmc-opt --llm-export-plan=output=- -o /dev/null %s | FileCheck %s
// RUN: llmc-opt --llm-export-plan %s | FileCheck %s --check-prefix=ATTRIBUTE
// RUN: llmc-opt --llm-export-plan=output=%t.json -o /dev/null %s && %python -m json.tool --compact %t.json | FileCheck %s --check-prefix=COMPACT

// The text is an attribute of the module where no file is named.
// ATTRIBUTE: module attributes {llm.plan = "{{.*}}arena

// Sizes as the engine format writes them; a tied result is no buffer of its own, and
// its buffer lives as long as both values.
// CHECK: "alignment": 256
// CHECK: "buffers": [
// CHECK: "bytes": 512,
// CHECK-NEXT: "dtype": "f32",
// CHECK-NEXT: "live": [
// CHECK-NEXT: 0,
// CHECK-NEXT: 2
// CHECK: "name": "embedding_0.0",
// CHECK-NEXT: "offset": 0,
// CHECK-NEXT: "shape": [
// CHECK-NEXT: "T",
// CHECK-NEXT: 8
// CHECK: "name": "attention_0.1"

// The sliding window of a layer is known from the attention that reads it.
// COMPACT: "kv_cache":{"block_size":16,"layers":[{"dtype":"f32","head_dim":8,"heads":1,"v_head_dim":8,"window":null},{"dtype":"f32","head_dim":8,"heads":1,"v_head_dim":8,"window":4}]}
// Every operand and result of a kernel has its entry; workspace says where it lies.
// COMPACT: "launches":[{"kernel":"embedding_0","operands":[{"input":"tokens"},{"weight":"w"}],"results":[0],"workspace":null},
// COMPACT-SAME: {"kernel":"attention_0","operands":[{"weight":"q"},{"kv":1},{"batch":true}],"results":[1],"workspace":{"bytes":64,"live":[1,1],"offset":1024}},
// COMPACT-SAME: {"kernel":"linear_0","operands":[{"buffer":1},{"weight":"w"},{"buffer":0}],"results":[0],"workspace":null}]
// COMPACT: "outputs":{"logits":0}
!kv = !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>
!cache = !llm.kv_cache<2 x !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>>
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !cache) -> tensor<?x8xf32>
    attributes {llm.arena_bytes = 1280 : i64, llm.arena_peak = 1280 : i64,
                llm.arena_lower_bound = 1216 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  %q = llm.weight @q : tensor<4x1x8xf32>
  %layer = llm.kv_layer %kv[1] : !cache -> !kv
  %a = llm.launch @embedding_0(%tokens, %w) {offsets = array<i64: 0>} : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %b = llm.launch @attention_0(%q, %layer, %batch) {offsets = array<i64: 512>, workspace_offset = 1024 : i64} : (tensor<4x1x8xf32>, !kv, !llm.batch) -> tensor<4x8xf32>
  %c = llm.launch @linear_0(%b, %w, %a) {offsets = array<i64: 0>, tied = array<i64: 0, 2>} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %c : tensor<?x8xf32>
}
llm.kernel @embedding_0(%x: tensor<?xi32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> attributes {anchor = "embedding"} {
  %0 = llm.embedding %x, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.kernel @attention_0(%q: tensor<4x1x8xf32>, %kv: !kv, %batch: !llm.batch) -> tensor<4x8xf32> attributes {anchor = "attention", workspace = 64 : i64} {
  %0 = llm.paged_attention %q, %kv, %batch {scale = 1.0 : f64, causal, window = 4 : i64} : tensor<4x1x8xf32>, !kv -> tensor<4x1x8xf32>
  %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<4x1x8xf32> into tensor<4x8xf32>
  llm.yield %1 : tensor<4x8xf32>
}
llm.kernel @linear_0(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %h: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "linear"} {
  %0 = llm.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %1 = arith.addf %0, %h : tensor<?x8xf32>
  llm.yield %1 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">
llm.parameter @q : tensor<4x1x8xf32> from #llm.source<"q">
