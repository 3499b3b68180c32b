// RUN: llmc-opt --canonicalize --cse %s | FileCheck %s

// What only computes goes when nothing reads it; what writes the cache stays, and
// reads of the cache are not moved across it.
!kv = !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>
// CHECK-LABEL: func.func @cache
func.func @cache(%q: tensor<?x1x8xf32>, %kv: !kv, %batch: !llm.batch) -> (tensor<?x1x8xf32>, tensor<?x1x8xf32>) {
  // CHECK: llm.paged_attention
  // CHECK-NEXT: llm.kv_append
  // CHECK-NEXT: llm.paged_attention
  // CHECK-NEXT: return
  %0 = llm.paged_attention %q, %kv, %batch {causal, scale = 1.0 : f64} : tensor<?x1x8xf32>, !kv -> tensor<?x1x8xf32>
  llm.kv_append %q, %q, %kv, %batch : tensor<?x1x8xf32>, tensor<?x1x8xf32>, !kv
  %1 = llm.paged_attention %q, %kv, %batch {causal, scale = 1.0 : f64} : tensor<?x1x8xf32>, !kv -> tensor<?x1x8xf32>
  %dead = llm.rms_norm %1 {eps = 1.0 : f64} : tensor<?x1x8xf32> -> tensor<?x1x8xf32>
  return %0, %1 : tensor<?x1x8xf32>, tensor<?x1x8xf32>
}

llm.kernel @norm(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {anchor = "norm"} {
  %0 = llm.rms_norm %x {eps = 1.0 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  llm.yield %0 : tensor<?x8xf32>
}
llm.kernel @append(%x: tensor<?x1x8xf32>, %kv: !kv, %batch: !llm.batch) attributes {anchor = "rope_append"} {
  llm.kv_append %x, %x, %kv, %batch : tensor<?x1x8xf32>, tensor<?x1x8xf32>, !kv
}
// A launch has an effect when it is given the cache.
// CHECK-LABEL: func.func @launches
func.func @launches(%x: tensor<?x8xf32>, %q: tensor<?x1x8xf32>, %kv: !kv, %batch: !llm.batch) {
  // CHECK-NOT: @norm
  %dead = llm.launch @norm(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: llm.launch @append
  llm.launch @append(%q, %kv, %batch) : (tensor<?x1x8xf32>, !kv, !llm.batch) -> ()
  return
}
