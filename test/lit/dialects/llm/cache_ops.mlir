// RUN: llmc-opt %s | FileCheck %s
// RUN: llmc-opt --mlir-print-op-generic %s | llmc-opt | FileCheck %s

// The paged KV cache. Types of the dialect are printed without `!llm.` where only
// they can stand.

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = bf16>
!latent = !llm.kv<heads = 1, head_dim = 24, v_head_dim = 0, block = 16, element = bf16>
!cache = !llm.kv_cache<2 x !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = bf16>>

// CHECK-LABEL: func.func @cache
func.func @cache(%cache: !cache, %batch: !llm.batch, %q: tensor<?x4x8xbf16>, %k: tensor<?x2x8xf32>,
                 %v: tensor<?x2x4xf32>, %heads: tensor<4xf32>) {
  // CHECK: %[[KV:.*]] = llm.kv_layer %{{.*}}[1] : <2 x !llm.kv<{{.*}}>> -> <heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = bf16>
  %kv = llm.kv_layer %cache[1] : !cache -> !kv
  // CHECK: llm.kv_append %{{.*}}, %{{.*}}, %[[KV]], %{{.*}} : tensor<?x2x8xf32>, tensor<?x2x4xf32>, <heads = 2
  llm.kv_append %k, %v, %kv, %batch : tensor<?x2x8xf32>, tensor<?x2x4xf32>, !kv
  // CHECK: llm.paged_attention %{{.*}}, %[[KV]], %{{.*}} {causal, scale = 1.000000e+00 : f64} : tensor<?x4x8xbf16>, <{{.*}}> -> tensor<?x4x4xbf16>
  %0 = llm.paged_attention %q, %kv, %batch {causal, scale = 1.0 : f64} : tensor<?x4x8xbf16>, !kv -> tensor<?x4x4xbf16>
  // CHECK: llm.paged_attention %{{.*}}, %[[KV]], %{{.*}} sinks(%{{.*}} : tensor<4xf32>) alibi(%{{.*}} : tensor<4xf32>) {scale = 1.000000e+00 : f64, softcap = 5.000000e+01 : f64, window = 16 : i64}
  %1 = llm.paged_attention %q, %kv, %batch sinks(%heads : tensor<4xf32>) alibi(%heads : tensor<4xf32>) {scale = 1.0 : f64, softcap = 50.0 : f64, window = 16 : i64} : tensor<?x4x8xbf16>, !kv -> tensor<?x4x4xbf16>
  return
}

// Latent attention: values are the first elements of the keys, as many as the result has.
// CHECK-LABEL: func.func @latent
func.func @latent(%kv: !latent, %batch: !llm.batch, %q: tensor<?x4x24xbf16>) {
  // CHECK: llm.paged_attention {{.*}} -> tensor<?x4x16xbf16>
  %0 = llm.paged_attention %q, %kv, %batch {causal, scale = 1.0 : f64} : tensor<?x4x24xbf16>, !latent -> tensor<?x4x16xbf16>
  return
}
