//===- LlmCacheOps.td - the paged KV cache -----------------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_DIALECTS_LLM_LLMCACHEOPS_TD
#define LLMC_DIALECTS_LLM_LLMCACHEOPS_TD

include "LlmBase.td"

def Llm_KvLayerOp : Llm_PureOp<"kv_layer"> {
  let summary = "one layer of the KV cache";
  let description = [{
    Selects the cache of a layer, so that equal layers use equal kernels.

    ```mlir
    %kv3 = llm.kv_layer %kv[3] : !llm.kv_cache<30 x !llm.kv<...>> -> !llm.kv<...>
    ```
  }];
  let arguments = (ins Llm_KvCacheType:$cache, I64Attr:$layer);
  let results = (outs Llm_KvType:$result);
  let assemblyFormat = [{
    $cache `[` $layer `]` attr-dict `:` type($cache) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Llm_KvAppendOp : Llm_Op<"kv_append"> {
  let summary = "stores keys and values of the step's rows";
  let description = [{
    Writes row t of `key` [T, Hkv, D] and `value` [T, Hkv, Dv] to slot
    `batch.slots[t]` of the layer. Values are converted to the cache's element type.

    ```mlir
    llm.kv_append %k, %v, %kv3, %batch : tensor<?x3x64xf32>, tensor<?x3x64xf32>, !llm.kv<...>
    ```
  }];
  let arguments = (ins Llm_FloatTensor:$key, Llm_FloatTensor:$value,
                       Arg<Llm_KvType, "the cache", [MemWrite]>:$kv,
                       Llm_BatchType:$batch);
  let assemblyFormat = [{
    $key `,` $value `,` $kv `,` $batch attr-dict `:` type($key) `,` type($value) `,` type($kv)
  }];
  let hasVerifier = 1;
}

def Llm_PagedAttentionOp : Llm_Op<"paged_attention", [AttrSizedOperandSegments]> {
  let summary = "attention of ragged rows over the paged cache";
  let description = [{
    `llm.attention` of each sequence of the batch over its cached keys and values.
    Rows `query_start[s] .. query_start[s+1]` of `query` [T, Hq, D] are the last
    tokens of sequence s: row i stands at position
    `kv_len[s] - (query_start[s+1] - query_start[s]) + i - query_start[s]`, and
    `causal` masks later positions. The keys and values of these rows must have been
    appended. Result [T, Hq, Dv].

    ```mlir
    %o = llm.paged_attention %q, %kv3, %batch {scale = 0.125 : f64, causal} : tensor<?x9x64xf32>, !llm.kv<...> -> tensor<?x9x64xf32>
    ```
  }];
  let arguments = (ins Llm_FloatTensor:$query,
                       Arg<Llm_KvType, "the cache", [MemRead]>:$kv,
                       Llm_BatchType:$batch, Optional<Llm_FloatTensor>:$sinks,
                       Optional<Llm_FloatTensor>:$alibi_slopes, F64Attr:$scale,
                       UnitAttr:$causal, OptionalAttr<I64Attr>:$window,
                       OptionalAttr<F64Attr>:$softcap);
  let results = (outs Llm_FloatTensor:$result);
  let assemblyFormat = [{
    $query `,` $kv `,` $batch (`sinks` `(` $sinks^ `:` type($sinks) `)`)?
    (`alibi` `(` $alibi_slopes^ `:` type($alibi_slopes) `)`)? attr-dict `:`
    type($query) `,` type($kv) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // LLMC_DIALECTS_LLM_LLMCACHEOPS_TD
