//===- LlmPrimitiveOps.td - what imported graphs are made of -*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The frontend's vocabulary next to arith, math and tensor. The raise passes turn
// clusters of them into the ops of LlmDecoderOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_DIALECTS_LLM_LLMPRIMITIVEOPS_TD
#define LLMC_DIALECTS_LLM_LLMPRIMITIVEOPS_TD

include "LlmBase.td"

def Llm_ReduceOp : Llm_PureOp<"reduce"> {
  let summary = "reduces dimensions, keeping them with size 1";
  let description = [{
    `dims` are reduced and stay as size-1 dimensions.

    ```mlir
    %m = llm.reduce mean %x {dims = array<i64: 1>} : tensor<?x576xf32> -> tensor<?x1xf32>
    ```
  }];
  let arguments = (ins Llm_ReduceKindAttr:$kind, Llm_FloatTensor:$input,
                       DenseI64ArrayAttr:$dims);
  let results = (outs Llm_FloatTensor:$result);
  let assemblyFormat = [{
    custom<BareEnum>($kind) $input attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Llm_BroadcastOp : Llm_PureOp<"broadcast"> {
  let summary = "NumPy broadcasting to a given shape";
  let description = [{
    Shapes are aligned at the last dimension; missing leading dimensions and
    dimensions of size 1 are repeated. Each dynamic dimension of the result that is
    not the same dynamic dimension of the input takes its size from `sizes`, in order.

    ```mlir
    %b = llm.broadcast %x : tensor<?x1xf32> -> tensor<?x576xf32>
    %c = llm.broadcast %g sizes(%t) : tensor<576xf32> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[AnyType]>:$input, Variadic<Index>:$sizes);
  let results = (outs RankedTensorOf<[AnyType]>:$result);
  let assemblyFormat = [{
    $input (`sizes` `(` $sizes^ `)`)? attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Llm_TransposeOp : Llm_PureOp<"transpose"> {
  let summary = "permutes dimensions";
  let description = [{
    Dimension i of the result is dimension `permutation[i]` of the input.

    ```mlir
    %t = llm.transpose %x {permutation = array<i64: 1, 0, 2>} : tensor<?x9x64xf32> -> tensor<9x?x64xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[AnyType]>:$input,
                       DenseI64ArrayAttr:$permutation);
  let results = (outs RankedTensorOf<[AnyType]>:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Llm_MatmulOp : Llm_PureOp<"matmul"> {
  let summary = "matrix product, batched over equal leading dimensions";
  let description = [{
    `[..., M, K] x [..., K, N] -> [..., M, N]`. Products with weights are
    `llm.linear`; this op remains for products of two activations.

    ```mlir
    %c = llm.matmul %a, %b : tensor<?x1xf32>, tensor<1x32xf32> -> tensor<?x32xf32>
    ```
  }];
  let arguments = (ins Llm_FloatTensor:$lhs, Llm_FloatTensor:$rhs);
  let results = (outs Llm_FloatTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // LLMC_DIALECTS_LLM_LLMPRIMITIVEOPS_TD
