// RUN: llmc-opt --llm-check-memory-plan --split-input-file --verify-diagnostics %s

// A result lies on an operand that its own launch reads.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32>
    attributes {llm.arena_bytes = 2048 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  %a = llm.launch @embedding_0(%tokens, %w) {offsets = array<i64: 0>} : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  // expected-error @below {{result #0 of @norm_0 (launch 1) at [256, 768) overlaps result #0 of @embedding_0 (launch 0) at [0, 512), which is live at launch 1}}
  %b = llm.launch @norm_0(%a) {offsets = array<i64: 256>} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %b : tensor<?x8xf32>
}
llm.kernel @embedding_0(%x: tensor<?xi32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> attributes {anchor = "embedding"} {
  %0 = llm.embedding %x, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.kernel @norm_0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "norm"} {
  %0 = llm.rms_norm %x {eps = 1.0e-5 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// A result lies on a value that a later launch reads.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32>
    attributes {llm.arena_bytes = 2048 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  %a = llm.launch @embedding_0(%tokens, %w) {offsets = array<i64: 0>} : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %b = llm.launch @norm_0(%a) {offsets = array<i64: 512>} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-error @below {{result #0 of @norm_0 (launch 2) at [0, 512) overlaps result #0 of @embedding_0 (launch 0) at [0, 512), which is live at launch 2}}
  %c = llm.launch @norm_0(%b) {offsets = array<i64: 0>} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %d = llm.launch @linear_0(%c, %w, %a) {offsets = array<i64: 1024>} : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
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
llm.kernel @linear_0(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %h: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "linear"} {
  %0 = llm.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %1 = arith.addf %0, %h : tensor<?x8xf32>
  llm.yield %1 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// A value that @step returns lives to the end.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32>
    attributes {llm.arena_bytes = 2048 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  %a = llm.launch @embedding_0(%tokens, %w) {offsets = array<i64: 0>} : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %b = llm.launch @norm_0(%a) {offsets = array<i64: 512>} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-error @below {{result #0 of @norm_0 (launch 2) at [0, 512) overlaps result #0 of @embedding_0 (launch 0) at [0, 512), which is live at launch 2}}
  %c = llm.launch @norm_0(%b) {offsets = array<i64: 0>} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %a : tensor<?x8xf32>
}
llm.kernel @embedding_0(%x: tensor<?xi32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> attributes {anchor = "embedding"} {
  %0 = llm.embedding %x, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.kernel @norm_0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "norm"} {
  %0 = llm.rms_norm %x {eps = 1.0e-5 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// Two results of one launch share bytes.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32>
    attributes {llm.arena_bytes = 2048 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  %f = llm.weight @f : tensor<8xf32>
  // expected-error @below {{result #1 of @rope_table_0 (launch 0) at [256, 768) overlaps result #0 of @rope_table_0 (launch 0) at [0, 512), both written by launch 0}}
  %a, %b = llm.launch @rope_table_0(%positions, %f) {offsets = array<i64: 0, 256>} : (tensor<?xi32>, tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>)
  %c = llm.launch @linear_0(%a, %w, %b) {offsets = array<i64: 1024>} : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %c : tensor<?x8xf32>
}
llm.kernel @rope_table_0(%p: tensor<?xi32>, %f: tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) attributes {anchor = "rope_table"} {
  %cos, %sin = llm.rope_table %p, %f {attention_scaling = 1.0 : f64} : tensor<?xi32>, tensor<8xf32> -> tensor<?x8xf32>
  llm.yield %cos, %sin : tensor<?x8xf32>, tensor<?x8xf32>
}
llm.kernel @linear_0(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %h: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "linear"} {
  %0 = llm.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %1 = arith.addf %0, %h : tensor<?x8xf32>
  llm.yield %1 : tensor<?x8xf32>
}
llm.parameter @f : tensor<8xf32> = dense<1.0> : tensor<8xf32>
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// Workspace lies on an operand.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32>
    attributes {llm.arena_bytes = 2048 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  %a = llm.launch @embedding_0(%tokens, %w) {offsets = array<i64: 0>} : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  // expected-error @below {{workspace of @norm_0 (launch 1) at [256, 320) overlaps result #0 of @embedding_0 (launch 0) at [0, 512), which is live at launch 1}}
  %b = llm.launch @norm_0(%a) {offsets = array<i64: 512>, workspace_offset = 256 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %b : tensor<?x8xf32>
}
llm.kernel @embedding_0(%x: tensor<?xi32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> attributes {anchor = "embedding"} {
  %0 = llm.embedding %x, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.kernel @norm_0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "norm", workspace = 64 : i64} {
  %0 = llm.rms_norm %x {eps = 1.0e-5 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// A buffer is not aligned.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32>
    attributes {llm.arena_bytes = 2048 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  // expected-error @below {{result #0 of @embedding_0 (launch 0) at [128, 640) is not aligned to 256 bytes}}
  %a = llm.launch @embedding_0(%tokens, %w) {offsets = array<i64: 128>} : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  return %a : tensor<?x8xf32>
}
llm.kernel @embedding_0(%x: tensor<?xi32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> attributes {anchor = "embedding"} {
  %0 = llm.embedding %x, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// A buffer leaves the arena.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32>
    attributes {llm.arena_bytes = 2048 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  // expected-error @below {{result #0 of @embedding_0 (launch 0) at [1792, 2304) is outside the arena of 2048 bytes}}
  %a = llm.launch @embedding_0(%tokens, %w) {offsets = array<i64: 1792>} : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  return %a : tensor<?x8xf32>
}
llm.kernel @embedding_0(%x: tensor<?xi32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> attributes {anchor = "embedding"} {
  %0 = llm.embedding %x, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// A launch was forgotten.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32>
    attributes {llm.arena_bytes = 2048 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  %a = llm.launch @embedding_0(%tokens, %w) {offsets = array<i64: 0>} : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  // expected-error @below {{launch 1 of @norm_0 has no offsets}}
  %b = llm.launch @norm_0(%a) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %b : tensor<?x8xf32>
}
llm.kernel @embedding_0(%x: tensor<?xi32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> attributes {anchor = "embedding"} {
  %0 = llm.embedding %x, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.kernel @norm_0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "norm"} {
  %0 = llm.rms_norm %x {eps = 1.0e-5 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// A workspace was forgotten.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32>
    attributes {llm.arena_bytes = 2048 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  %a = llm.launch @embedding_0(%tokens, %w) {offsets = array<i64: 0>} : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  // expected-error @below {{@norm_0 needs 64 bytes of workspace, but launch 1 has no workspace_offset}}
  %b = llm.launch @norm_0(%a) {offsets = array<i64: 512>} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %b : tensor<?x8xf32>
}
llm.kernel @embedding_0(%x: tensor<?xi32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> attributes {anchor = "embedding"} {
  %0 = llm.embedding %x, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.kernel @norm_0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "norm", workspace = 64 : i64} {
  %0 = llm.rms_norm %x {eps = 1.0e-5 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// A tie overwrites an operand that is read again.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32>
    attributes {llm.arena_bytes = 2048 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  %a = llm.launch @embedding_0(%tokens, %w) {offsets = array<i64: 0>} : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %b = llm.launch @norm_0(%a) {offsets = array<i64: 512>} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-error @below {{ties result #0 to result #0 of @embedding_0 (launch 0) at [0, 512), which is read again after this launch}}
  %c = llm.launch @linear_0(%b, %w, %a) {offsets = array<i64: 0>, tied = array<i64: 0, 2>} : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d = llm.launch @linear_0(%c, %w, %a) {offsets = array<i64: 1024>} : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
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
llm.kernel @linear_0(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %h: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "linear"} {
  %0 = llm.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %1 = arith.addf %0, %h : tensor<?x8xf32>
  llm.yield %1 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// A tie to a value that the same launch reads in another way too.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32>
    attributes {llm.arena_bytes = 2048 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  %a = llm.launch @embedding_0(%tokens, %w) {offsets = array<i64: 0>} : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  // expected-error @below {{ties result #0 to result #0 of @embedding_0 (launch 0) at [0, 512), which is also another operand of this launch}}
  %c = llm.launch @linear_0(%a, %w, %a) {offsets = array<i64: 0>, tied = array<i64: 0, 2>} : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %c : tensor<?x8xf32>
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

// A tie to the input of a product, of which each result element reads a whole row.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32>
    attributes {llm.arena_bytes = 2048 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  %a = llm.launch @embedding_0(%tokens, %w) {offsets = array<i64: 0>} : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %b = llm.launch @norm_0(%a) {offsets = array<i64: 512>} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-error @below {{ties result #0 to operand #0, but @linear_0 does not compute it from that operand element by element}}
  %c = llm.launch @linear_0(%b, %w, %a) {offsets = array<i64: 512>, tied = array<i64: 0, 0>} : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %c : tensor<?x8xf32>
}
llm.kernel @embedding_0(%x: tensor<?xi32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> attributes {anchor = "embedding"} {
  %0 = llm.embedding %x, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.kernel @norm_0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "norm"} {
  %0 = llm.rms_norm %x {eps = 1.0e-5 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.kernel @linear_0(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %h: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "linear"} {
  %0 = llm.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %1 = arith.addf %0, %h : tensor<?x8xf32>
  llm.yield %1 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// A tied result lies elsewhere.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32>
    attributes {llm.arena_bytes = 2048 : i64, llm.arena_alignment = 256 : i64,
                llm.max_num_tokens = 16 : i64, llm.max_batch_size = 2 : i64} {
  %w = llm.weight @w : tensor<8x8xf32>
  %a = llm.launch @embedding_0(%tokens, %w) {offsets = array<i64: 0>} : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %b = llm.launch @norm_0(%a) {offsets = array<i64: 512>} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-error @below {{ties result #0 at offset 1024 to result #0 of @embedding_0 (launch 0) at [0, 512)}}
  %c = llm.launch @linear_0(%b, %w, %a) {offsets = array<i64: 1024>, tied = array<i64: 0, 2>} : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %c : tensor<?x8xf32>
}
llm.kernel @embedding_0(%x: tensor<?xi32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> attributes {anchor = "embedding"} {
  %0 = llm.embedding %x, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.kernel @norm_0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "norm"} {
  %0 = llm.rms_norm %x {eps = 1.0e-5 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.kernel @linear_0(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %h: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "linear"} {
  %0 = llm.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %1 = arith.addf %0, %h : tensor<?x8xf32>
  llm.yield %1 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// A step that was not planned.
// expected-error @below {{expected the attribute llm.max_num_tokens on @step; run llm-plan-memory first}}
// expected-error @below {{expected the attribute llm.max_batch_size on @step; run llm-plan-memory first}}
// expected-error @below {{expected the attribute llm.arena_bytes on @step; run llm-plan-memory first}}
// expected-error @below {{expected the attribute llm.arena_alignment on @step; run llm-plan-memory first}}
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) {
  return
}
