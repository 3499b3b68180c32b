// Passes of the phase `optimize`.
#ifndef LLMC_PASSES_OPTIMIZE_TD
#define LLMC_PASSES_OPTIMIZE_TD

include "mlir/Pass/PassBase.td"

def LlmAssignPrecision : Pass<"llm-assign-precision", "::mlir::ModuleOp"> {
  let summary = "chooses the element types of weights, activations and KV cache";
  let description = [{
    A frontend imports in float32. This pass alone decides what is narrower:

    - Parameters that linears, embeddings and norms read get the type `weights`.
      Parameters with a value (rope frequencies), with an offset in their recipe
      (Gemma's `1 + w`, whose learned part would be rounded away) or with other
      readers stay float32.
    - Inputs of GEMMs get the type `activations`, and so does every value on the way
      there whose readers all take it: norms, projections, ropes, attentions and
      gated units write it directly. A cast is inserted only in front of a GEMM whose
      input something else needs in float32.
    - The KV cache gets the type `kv`.

    The residual stream, statistics of norms, rope tables, softmax, accumulators and
    logits stay float32. With `activations=f32` only weights and cache change, which
    is what the host target uses.

    Before:
    ```mlir
    %n = llm.rms_norm %h, %g {eps = 1.0e-5 : f64} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
    %y = llm.linear %n, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
    %r = arith.addf %h, %y : tensor<?x64xf32>
    ```
    After `weights=bf16 activations=bf16`:
    ```mlir
    %n = llm.rms_norm %h, %g {eps = 1.0e-5 : f64} : tensor<?x64xf32>, tensor<64xbf16> -> tensor<?x64xbf16>
    %y = llm.linear %n, %w : tensor<?x64xbf16>, tensor<64x64xbf16> -> tensor<?x64xf32>
    %r = arith.addf %h, %y : tensor<?x64xf32>
    ```
  }];
  let options = [
    Option<"weights", "weights", "std::string", /*default=*/"\"bf16\"",
           "storage type of weights: f32, bf16 or f16">,
    Option<"activations", "activations", "std::string", /*default=*/"\"bf16\"",
           "type of GEMM inputs: f32, bf16 or f16">,
    Option<"kv", "kv", "std::string", /*default=*/"\"bf16\"",
           "type of the KV cache: f32, bf16 or f16">
  ];
  let dependentDialects = ["::llmc::llm::LlmDialect", "::mlir::arith::ArithDialect"];
}

def LlmMergeProjections : Pass<"llm-merge-projections", "::mlir::ModuleOp"> {
  let summary = "merges projections that share their input into one GEMM";
  let description = [{
    At few tokens a GEMM costs what reading its weight costs plus a fixed price; at
    many, wide GEMMs use the machine better. So:

    - Linears of one input that become queries, keys and values (through views, norms
      and ropes) become one linear over concatenated weights, and slices of its
      result.
    - Two linears of one input that meet in an `llm.glu` become one linear over
      interleaved weights and an `llm.packed_glu`: `glu-block` rows of gate, as many
      of up, in turn, so that one GEMM tile holds both factors of each output.
    - A linear whose halves meet in an `llm.glu` (checkpoints that store gate and up as
      one matrix) has its rows interleaved the same way.

    Biases are merged like their weights. Merged parameters are recipes over those of
    their parts; parts that nothing reads any more are erased. Projections that are
    already one matrix (`qkv_proj`) stay as they are. Linears with different element
    types or of which only some have a bias are not merged.

    Before:
    ```mlir
    %q = llm.linear %x, %wq : tensor<?x64xbf16>, tensor<64x64xbf16> -> tensor<?x64xbf16>
    %k = llm.linear %x, %wk : tensor<?x64xbf16>, tensor<32x64xbf16> -> tensor<?x32xbf16>
    ```
    After:
    ```mlir
    llm.parameter @attn.qk_proj.weight : tensor<96x64xbf16>
      from #llm.concat<[#llm.source<"attn.q_proj.weight">, #llm.source<"attn.k_proj.weight">], dim = 0>
    ...
    %qk = llm.linear %x, %w : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xbf16>
    %q = tensor.extract_slice %qk[0, 0] [%t, 64] [1, 1] : tensor<?x96xbf16> to tensor<?x64xbf16>
    %k = tensor.extract_slice %qk[0, 64] [%t, 32] [1, 1] : tensor<?x96xbf16> to tensor<?x32xbf16>
    ```
  }];
  let options = [
    Option<"gluBlock", "glu-block", "int64_t", /*default=*/"1",
           "rows of gate and of up that are interleaved at a time">
  ];
  let dependentDialects = ["::llmc::llm::LlmDialect", "::mlir::tensor::TensorDialect"];
}

#endif // LLMC_PASSES_OPTIMIZE_TD
