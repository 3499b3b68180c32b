//===- LlmCollectiveOps.td - tensor parallelism ------------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_DIALECTS_LLM_LLMCOLLECTIVEOPS_TD
#define LLMC_DIALECTS_LLM_LLMCOLLECTIVEOPS_TD

include "LlmBase.td"

def Llm_AllReduceOp : Llm_Op<"all_reduce"> {
  let summary = "sum over the ranks of the tensor-parallel group";
  let description = [{
    Every rank receives the elementwise sum of all ranks' inputs, added in rank order
    so that the result is the same on each rank and in each run.

    ```mlir
    %y = llm.all_reduce %x {ranks = 4 : i64} : tensor<?x4096xbf16> -> tensor<?x4096xbf16>
    ```
  }];
  let arguments = (ins Llm_FloatTensor:$input, I64Attr:$ranks);
  let results = (outs Llm_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Llm_AllGatherOp : Llm_Op<"all_gather"> {
  let summary = "joins the shards of all ranks along one dimension";
  let description = [{
    Every rank receives the inputs of ranks 0, 1, ... joined along `dim`.

    ```mlir
    %y = llm.all_gather %x {dim = 1 : i64, ranks = 4 : i64} : tensor<?x32064xf32> -> tensor<?x128256xf32>
    ```
  }];
  let arguments = (ins Llm_FloatTensor:$input, I64Attr:$dim, I64Attr:$ranks);
  let results = (outs Llm_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Llm_ReduceScatterOp : Llm_Op<"reduce_scatter"> {
  let summary = "sum over ranks, each rank keeping its shard";
  let description = [{
    Rank r receives slice r along `dim` of the sum of all ranks' inputs.

    ```mlir
    %y = llm.reduce_scatter %x {dim = 1 : i64, ranks = 4 : i64} : tensor<?x4096xf32> -> tensor<?x1024xf32>
    ```
  }];
  let arguments = (ins Llm_FloatTensor:$input, I64Attr:$dim, I64Attr:$ranks);
  let results = (outs Llm_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

#endif // LLMC_DIALECTS_LLM_LLMCOLLECTIVEOPS_TD
