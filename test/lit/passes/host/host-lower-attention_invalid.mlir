// RUN: llmc-opt %s --host-lower-attention --verify-diagnostics

!kv = !llm.kv<heads = 3, head_dim = 21, v_head_dim = 21, block = 64, element = f32>

// expected-error @below {{is not an attention kernel that the host target can run}}
llm.kernel @attention(%q: tensor<?x9x21xf32>, %kv: !kv, %b: !llm.batch) -> tensor<?x9x21xf32> attributes {anchor = "attention"} {
  %o = llm.paged_attention %q, %kv, %b {scale = 0.125 : f64, causal} : tensor<?x9x21xf32>, !kv -> tensor<?x9x21xf32>
  llm.yield %o : tensor<?x9x21xf32>
}
