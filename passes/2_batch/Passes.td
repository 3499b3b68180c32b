// Passes of the phase `batch`.
#ifndef LLMC_PASSES_BATCH_TD
#define LLMC_PASSES_BATCH_TD

include "mlir/Pass/PassBase.td"

def LlmConvertToPaged : Pass<"llm-convert-to-paged", "::mlir::ModuleOp"> {
  let summary = "turns the dense graph of one sequence into that of a ragged batch";
  let description = [{
    A decoder works on rows by themselves except in attention. So the graph of one
    sequence, as a frontend imports it, serves any number of requests at once when its
    attention does: `@step` gets `%logit_rows`, `%batch` and `%kv`, and each
    `llm.attention` becomes an append to its layer of the KV cache and an
    `llm.paged_attention` that reads it. No family needs a hand-written batched model.

    Layers are numbered in program order, and each has the heads, head dimensions and
    element type of its own keys and values. Attentions over the same keys and values
    share a layer. Window, softcap, sinks and slopes stay on the attention.

    Preconditions: attention is causal and its keys are `[T, heads, D]` of static
    heads and D (`llm-raise-attention`).

    Before:
    ```mlir
    func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x256xf32> {
      ...
      %o = llm.attention %q, %k, %v {scale = 0.25 : f64, causal} : tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32> -> tensor<?x4x16xf32>
    ```
    After:
    ```mlir
    func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %logit_rows: tensor<?xi32>,
                    %batch: !llm.batch, %kv: !llm.kv_cache<...>) -> tensor<?x256xf32> {
      ...
      %l0 = llm.kv_layer %kv[0] : !llm.kv_cache<...> -> !llm.kv<heads = 2, head_dim = 16, v_head_dim = 16, block = 64, element = f32>
      llm.kv_append %k, %v, %l0, %batch : tensor<?x2x16xf32>, tensor<?x2x16xf32>, !llm.kv<...>
      %o = llm.paged_attention %q, %l0, %batch {scale = 0.25 : f64, causal} : tensor<?x4x16xf32>, !llm.kv<...> -> tensor<?x4x16xf32>
    ```
  }];
  let options = [
    Option<"blockSize", "block-size", "int64_t", /*default=*/"64",
           "tokens in one block of the KV cache, a power of two">
  ];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def LlmSelectLogitRows : Pass<"llm-select-logit-rows", "::mlir::ModuleOp"> {
  let summary = "computes logits only for the rows that need them";
  let description = [{
    Only the last token of a request (and tokens whose logprobs were asked for) needs
    logits; a prefill of 2,000 tokens needs one row of them, and the vocabulary
    projection is one of the largest matrices. The pass puts an `llm.gather_rows` by
    `%logit_rows` as far up from the result as rows stay independent and nothing else
    reads them: in practice in front of the last norm.

    Preconditions: `llm-convert-to-paged` has run. Does nothing when `%logit_rows` is
    in use already.

    Before:
    ```mlir
    %n = llm.rms_norm %h, %g {eps = 1.0e-5 : f64} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
    %y = llm.linear %n, %w : tensor<?x64xf32>, tensor<256x64xf32> -> tensor<?x256xf32>
    return %y : tensor<?x256xf32>
    ```
    After:
    ```mlir
    %r = llm.gather_rows %h, %logit_rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
    %n = llm.rms_norm %r, %g {eps = 1.0e-5 : f64} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
    %y = llm.linear %n, %w : tensor<?x64xf32>, tensor<256x64xf32> -> tensor<?x256xf32>
    return %y : tensor<?x256xf32>
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect", "::mlir::tensor::TensorDialect"];
}

#endif // LLMC_PASSES_BATCH_TD
