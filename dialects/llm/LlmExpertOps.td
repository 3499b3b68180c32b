//===- LlmExpertOps.td - mixture of experts ----------------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_DIALECTS_LLM_LLMEXPERTOPS_TD
#define LLMC_DIALECTS_LLM_LLMEXPERTOPS_TD

include "LlmBase.td"

def Llm_MoeRouteOp : Llm_PureOp<"moe_route"> {
  let summary = "chooses experts for each row";
  let description = [{
    Scores router logits [T, E] (`softmax` or `sigmoid`), adds `bias` [E] for the
    choice only, keeps the `top_k` best experts of each row (within the best
    `top_groups` of `groups` groups when given) and returns their weights [T, k],
    renormalised to sum 1 when `renormalize` is set and multiplied by `scale`, and
    their ids [T, k].

    ```mlir
    %w, %e = llm.moe_route %logits {top_k = 2 : i64, scoring = "softmax", renormalize, scale = 1.0 : f64} : tensor<?x8xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
    ```
  }];
  let arguments = (ins Llm_FloatTensor:$logits, Optional<Llm_FloatTensor>:$bias,
                       I64Attr:$top_k, StrAttr:$scoring, UnitAttr:$renormalize,
                       F64Attr:$scale, OptionalAttr<I64Attr>:$groups,
                       OptionalAttr<I64Attr>:$top_groups);
  let results = (outs Llm_FloatTensor:$weights, Llm_IdTensor:$experts);
  let assemblyFormat = [{
    $logits (`bias` `(` $bias^ `:` type($bias) `)`)? attr-dict `:` type($logits)
    `->` type($weights) `,` type($experts)
  }];
  let hasVerifier = 1;
}

def Llm_MoeMlpOp : Llm_PureOp<"moe_mlp", [AttrSizedOperandSegments]> {
  let summary = "gated experts applied to the rows routed to them";
  let description = [{
    `result[t] = sum_k weights[t, k] * down[e] * (act(gate_up[e] x)_gated)` with
    e = experts[t, k]. Input [T, H], gate_up [E, 2F, H] in the given layout, down
    [E, H, F], optional biases [E, 2F] and [E, H].

    ```mlir
    %y = llm.moe_mlp silu split %x, %w, %e, %gate_up, %down : tensor<?x512xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<8x1024x512xbf16>, tensor<8x512x512xbf16> -> tensor<?x512xf32>
    ```
  }];
  let arguments = (ins Llm_ActivationKindAttr:$kind, Llm_GluLayoutAttr:$layout,
                       Llm_FloatTensor:$input, Llm_FloatTensor:$weights,
                       Llm_IdTensor:$experts, Llm_WeightTensor:$gate_up,
                       Llm_WeightTensor:$down,
                       Optional<Llm_FloatTensor>:$gate_up_bias,
                       Optional<Llm_FloatTensor>:$down_bias);
  let results = (outs Llm_FloatTensor:$result);
  let assemblyFormat = [{
    custom<BareEnum>($kind) custom<BareEnum>($layout) $input `,` $weights `,` $experts `,`
    $gate_up `,` $down
    (`gate_up_bias` `(` $gate_up_bias^ `:` type($gate_up_bias) `)`)?
    (`down_bias` `(` $down_bias^ `:` type($down_bias) `)`)? attr-dict `:`
    type($input) `,` type($weights) `,` type($experts) `,` type($gate_up) `,`
    type($down) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // LLMC_DIALECTS_LLM_LLMEXPERTOPS_TD
