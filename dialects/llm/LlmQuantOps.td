//===- LlmQuantOps.td - scaled and packed weights ----------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_DIALECTS_LLM_LLMQUANTOPS_TD
#define LLMC_DIALECTS_LLM_LLMQUANTOPS_TD

include "LlmBase.td"

def Llm_QuantizeOp : Llm_PureOp<"quantize"> {
  let summary = "divides by a scale and converts to a narrow type";
  let description = [{
    `result = convert(input / scale)`, saturating. The scale is a scalar tensor (static
    per tensor), [T, 1] (per token) or [T, H/g] (per group of g columns).

    ```mlir
    %q = llm.quantize %x, %s : tensor<?x4096xbf16>, tensor<f32> -> tensor<?x4096xf8E4M3FN>
    ```
  }];
  let arguments = (ins Llm_FloatTensor:$input, Llm_FloatTensor:$scale);
  let results = (outs RankedTensorOf<[AnyType]>:$result);
  let assemblyFormat = [{
    $input `,` $scale attr-dict `:` type($input) `,` type($scale) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Llm_DynamicScaleOp : Llm_PureOp<"dynamic_scale"> {
  let summary = "scale of each row from its largest magnitude";
  let description = [{
    `result[t, j] = max(|input[t, group j]|) / limit`, with `group` columns a scale
    (0: the whole row) and `limit` the largest value of the narrow type. At least
    2^-126, so that a row of zeros quantizes to zeros.

    ```mlir
    %s = llm.dynamic_scale %x {group = 0 : i64, limit = 448.0 : f64} : tensor<?x4096xbf16> -> tensor<?x1xf32>
    ```
  }];
  let arguments = (ins Llm_FloatTensor:$input, I64Attr:$group, F64Attr:$limit);
  let results = (outs RankedTensorOf<[F32]>:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Llm_ScaledLinearOp : Llm_PureOp<"scaled_linear", [AttrSizedOperandSegments]> {
  let summary = "linear of quantized operands";
  let description = [{
    `result = (input * input_scale) * (weight * weight_scale)^T (+ bias)`. Input
    [T, K], weight [N, K]; `input_scale` absent (weight-only), scalar, [T, 1] or
    [T, K/g]; `weight_scale` scalar, [N, 1], [N, K/g] or [N/b, K/b];
    `weight_zero` [N, K/g] is subtracted before scaling.

    ```mlir
    %y = llm.scaled_linear %x, %w weight_scale(%ws : tensor<4096x1xf32>) input_scale(%xs : tensor<f32>) : tensor<?x4096xf8E4M3FN>, tensor<4096x4096xf8E4M3FN> -> tensor<?x4096xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[AnyType]>:$input,
                       RankedTensorOf<[AnyType]>:$weight,
                       Llm_FloatTensor:$weight_scale,
                       Optional<Llm_FloatTensor>:$input_scale,
                       Optional<RankedTensorOf<[AnyType]>>:$weight_zero,
                       Optional<Llm_FloatTensor>:$bias);
  let results = (outs Llm_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $weight `weight_scale` `(` $weight_scale `:` type($weight_scale) `)`
    (`input_scale` `(` $input_scale^ `:` type($input_scale) `)`)?
    (`weight_zero` `(` $weight_zero^ `:` type($weight_zero) `)`)?
    (`bias` `(` $bias^ `:` type($bias) `)`)? attr-dict `:` type($input) `,`
    type($weight) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // LLMC_DIALECTS_LLM_LLMQUANTOPS_TD
