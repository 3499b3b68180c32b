//===- LlmDecoderOps.td - the blocks of a decoder ----------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_DIALECTS_LLM_LLMDECODEROPS_TD
#define LLMC_DIALECTS_LLM_LLMDECODEROPS_TD

include "LlmBase.td"

def Llm_EmbeddingOp : Llm_PureOp<"embedding"> {
  let summary = "rows of a table by id";
  let description = [{
    `result[t, :] = table[ids[t], :]`; `ids` [T], `table` [V, H], result [T, H].

    ```mlir
    %h = llm.embedding %tokens, %table : tensor<?xi32>, tensor<49152x576xbf16> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_IdTensor:$ids, Llm_WeightTensor:$table);
  let results = (outs Llm_FloatTensor:$result);
  let assemblyFormat = [{
    $ids `,` $table attr-dict `:` type($ids) `,` type($table) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Llm_LinearOp : Llm_PureOp<"linear"> {
  let summary = "product with a weight, and bias";
  let description = [{
    `result = input * weight^T (+ bias)`: input [T, K], weight [N, K], bias [N],
    result [T, N]. Accumulates in float32 whatever the element types.

    ```mlir
    %y = llm.linear %x, %w bias(%b) : tensor<?x576xbf16>, tensor<960x576xbf16>, tensor<960xbf16> -> tensor<?x960xf32>
    ```
  }];
  let arguments = (ins Llm_FloatTensor:$input, Llm_WeightTensor:$weight,
                       Optional<Llm_FloatTensor>:$bias);
  let results = (outs Llm_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` `(` $bias^ `)`)? attr-dict `:` type($input) `,`
    type($weight) (`,` type($bias)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

def Llm_RmsNormOp : Llm_PureOp<"rms_norm"> {
  let summary = "root-mean-square norm over the last dimension";
  let description = [{
    `x / sqrt(mean(x^2) + eps) * gamma`, statistics in float32. Input [T, H], or
    [T, heads, D] for norms of queries and keys; gamma [last] or absent.

    ```mlir
    %y = llm.rms_norm %x, %g {eps = 1.0e-5 : f64} : tensor<?x576xf32>, tensor<576xbf16> -> tensor<?x576xbf16>
    ```
  }];
  let arguments = (ins Llm_FloatTensor:$input, Optional<Llm_FloatTensor>:$gamma,
                       F64Attr:$eps);
  let results = (outs Llm_FloatTensor:$result);
  let assemblyFormat = [{
    $input (`,` $gamma^)? attr-dict `:` type($input) (`,` type($gamma)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

def Llm_LayerNormOp : Llm_PureOp<"layer_norm", [AttrSizedOperandSegments]> {
  let summary = "layer norm over the last dimension";
  let description = [{
    `(x - mean) / sqrt(var + eps) * gamma + beta`, statistics in float32; gamma and
    beta [last], each optional.

    ```mlir
    %y = llm.layer_norm %x gamma(%g) beta(%b) {eps = 1.0e-5 : f64} : tensor<?x768xf32>, tensor<768xf32>, tensor<768xf32> -> tensor<?x768xf32>
    ```
  }];
  let arguments = (ins Llm_FloatTensor:$input, Optional<Llm_FloatTensor>:$gamma,
                       Optional<Llm_FloatTensor>:$beta, F64Attr:$eps);
  let results = (outs Llm_FloatTensor:$result);
  let assemblyFormat = [{
    $input (`gamma` `(` $gamma^ `)`)? (`beta` `(` $beta^ `)`)? attr-dict `:`
    custom<NormTypes>(ref($gamma), ref($beta), type($input), type($gamma), type($beta))
    `->` type($result)
  }];
  let hasVerifier = 1;
}

def Llm_RopeTableOp : Llm_PureOp<"rope_table"> {
  let summary = "cosines and sines of rotary positions";
  let description = [{
    `angle[t, i] = positions[t] * inv_freq[i]` in float32; results are
    `cos(angle) * attention_scaling` and `sin(angle) * attention_scaling`, [T, R/2].
    Every static rope type (default, linear, llama3, yarn, ...) is a choice of
    `inv_freq` and `attention_scaling`.

    ```mlir
    %cos, %sin = llm.rope_table %positions, %f {attention_scaling = 1.0 : f64} : tensor<?xi32>, tensor<32xf32> -> tensor<?x32xf32>
    ```
  }];
  let arguments = (ins Llm_IdTensor:$positions, RankedTensorOf<[F32]>:$inv_freq,
                       F64Attr:$attention_scaling);
  let results = (outs RankedTensorOf<[F32]>:$cos, RankedTensorOf<[F32]>:$sin);
  let assemblyFormat = [{
    $positions `,` $inv_freq attr-dict `:` type($positions) `,` type($inv_freq)
    `->` custom<SameTypePair>(type($cos), type($sin))
  }];
  let hasVerifier = 1;
}

def Llm_RopeOp : Llm_PureOp<"rope"> {
  let summary = "rotary position embedding";
  let description = [{
    Rotates the first `rotary_dim = 2 * R/2` elements of each head by the angles of
    its row; the rest passes through. Input [T, heads, D], cos and sin [T, R/2].
    `half` rotates pairs (i, i + R/2), `interleaved` pairs (2i, 2i + 1).

    ```mlir
    %q1 = llm.rope half %q, %cos, %sin : tensor<?x9x64xf32>, tensor<?x32xf32> -> tensor<?x9x64xf32>
    ```
  }];
  let arguments = (ins Llm_RopeStyleAttr:$style, Llm_FloatTensor:$input,
                       RankedTensorOf<[F32]>:$cos, RankedTensorOf<[F32]>:$sin);
  let results = (outs Llm_FloatTensor:$result);
  let assemblyFormat = [{
    custom<BareEnum>($style) $input `,` $cos `,` $sin attr-dict `:` type($input) `,`
    custom<SameTypePair>(type($cos), type($sin)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Llm_AttentionOp : Llm_PureOp<"attention", [AttrSizedOperandSegments]> {
  let summary = "dense attention of one sequence";
  let description = [{
    Softmax attention of `query` [T, Hq, D] over `key` [T, Hkv, D] and `value`
    [T, Hkv, Dv] of the same sequence; query head h reads head h / (Hq / Hkv).
    Scores are `scale * q.k`, then `softcap * tanh(score / softcap)` when `softcap`
    is given, then `+ alibi_slopes[h] * (j - i)`; `causal` masks j > i, `window`
    masks j <= i - window. `sinks` [Hq] adds one virtual score per head to the
    softmax's denominator.

    ```mlir
    %o = llm.attention %q, %k, %v {scale = 0.125 : f64, causal} : tensor<?x9x64xf32>, tensor<?x3x64xf32>, tensor<?x3x64xf32> -> tensor<?x9x64xf32>
    ```
  }];
  let arguments = (ins Llm_FloatTensor:$query, Llm_FloatTensor:$key,
                       Llm_FloatTensor:$value, Optional<Llm_FloatTensor>:$sinks,
                       Optional<Llm_FloatTensor>:$alibi_slopes, F64Attr:$scale,
                       UnitAttr:$causal, OptionalAttr<I64Attr>:$window,
                       OptionalAttr<F64Attr>:$softcap);
  let results = (outs Llm_FloatTensor:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`sinks` `(` $sinks^ `:` type($sinks) `)`)?
    (`alibi` `(` $alibi_slopes^ `:` type($alibi_slopes) `)`)? attr-dict `:`
    type($query) `,` type($key) `,` type($value) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Llm_ActivationOp : Llm_PureOp<"activation"> {
  let summary = "elementwise activation";
  let description = [{
    Applies the named function, computed in float32.

    ```mlir
    %y = llm.activation gelu_tanh %x : tensor<?x3072xf32> -> tensor<?x3072xf32>
    ```
  }];
  let arguments = (ins Llm_ActivationKindAttr:$kind, Llm_FloatTensor:$input);
  let results = (outs Llm_FloatTensor:$result);
  let assemblyFormat = [{
    custom<BareEnum>($kind) $input attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Llm_GluOp : Llm_PureOp<"glu"> {
  let summary = "gated linear unit of two tensors";
  let description = [{
    `activation(gate) * up`.

    ```mlir
    %y = llm.glu silu %gate, %up : tensor<?x1536xf32>, tensor<?x1536xf32> -> tensor<?x1536xf32>
    ```
  }];
  let arguments = (ins Llm_ActivationKindAttr:$kind, Llm_FloatTensor:$gate,
                       Llm_FloatTensor:$up);
  let results = (outs Llm_FloatTensor:$result);
  let assemblyFormat = [{
    custom<BareEnum>($kind) $gate `,` $up attr-dict `:` type($gate) `,` type($up) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Llm_PackedGluOp : Llm_PureOp<"packed_glu"> {
  let summary = "gated linear unit of one packed tensor";
  let description = [{
    `activation(gate) * up` where the last dimension of the input holds both, [T, 2F]
    to [T, F], in the given layout. `interleaved` alternates `block` columns of gate
    and `block` columns of up: targets choose the block that brings both factors
    into one register (`split` ignores it).

    ```mlir
    %y = llm.packed_glu silu interleaved %x {block = 8 : i64} : tensor<?x3072xf32> -> tensor<?x1536xf32>
    ```
  }];
  let arguments = (ins Llm_ActivationKindAttr:$kind, Llm_GluLayoutAttr:$layout,
                       Llm_FloatTensor:$input,
                       DefaultValuedAttr<I64Attr, "1">:$block);
  let results = (outs Llm_FloatTensor:$result);
  let assemblyFormat = [{
    custom<BareEnum>($kind) custom<BareEnum>($layout) $input attr-dict `:`
    type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Llm_GatherRowsOp : Llm_PureOp<"gather_rows"> {
  let summary = "selected rows";
  let description = [{
    `result[r, ...] = input[rows[r], ...]`.

    ```mlir
    %last = llm.gather_rows %h, %logit_rows : tensor<?x576xf32>, tensor<?xi32> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[AnyType]>:$input, Llm_IdTensor:$rows);
  let results = (outs RankedTensorOf<[AnyType]>:$result);
  let assemblyFormat = [{
    $input `,` $rows attr-dict `:` type($input) `,` type($rows) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Llm_SampleOp : Llm_PureOp<"sample"> {
  let summary = "draws the next token of each row";
  let description = [{
    Per row: temperature 0 takes the first maximum; otherwise logits are divided by
    temperature, cut by top_k, then by top_p over the softmax of what top_k kept, then
    by min_p relative to the largest, and one token is drawn by the Gumbel-max rule
    with a counter-based generator: the draw depends on (seed, index, token id) only,
    never on the batch. `runtime/src/sampler.h` is the exact definition; a row with a
    NaN or without a finite maximum gives -1.

    ```mlir
    %next = llm.sample %logits, %temperature, %top_k, %top_p, %min_p, %seed, %index : (tensor<?x49152xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>) -> tensor<?xi32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[F32]>:$logits,
                       1DTensorOf<[F32]>:$temperature, 1DTensorOf<[I32]>:$top_k,
                       1DTensorOf<[F32]>:$top_p, 1DTensorOf<[F32]>:$min_p,
                       1DTensorOf<[I64]>:$seed, 1DTensorOf<[I32]>:$index);
  let results = (outs 1DTensorOf<[I32]>:$result);
  let assemblyFormat = [{
    $logits `,` $temperature `,` $top_k `,` $top_p `,` $min_p `,` $seed `,` $index
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // LLMC_DIALECTS_LLM_LLMDECODEROPS_TD
