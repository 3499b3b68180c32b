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
    types, of which only some have a bias, or of which only some are to be quantized,
    are not merged.

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

def LlmAssignQuantization : Pass<"llm-assign-quantization", "::mlir::ModuleOp"> {
  let summary = "chooses the linears that are quantized";
  let description = [{
    Marks each `llm.linear` of @step with the attribute `llm.quantization`, which later
    passes carry along and `llm-lower-quantization` carries out. Left out are linears
    whose parameter an `exclude` pattern names, and, without `lm-head`, those that make
    the logits. A pattern is a glob over the name of the parameter or of its module
    (the name without `.weight`): `*.layers.0.*`, `*.down_proj`.

    An `exclude` pattern that names no linear, in features that are no multiple of
    `group`, and a choice that leaves nothing to quantize are errors.

    Before:
    ```mlir
    %w = llm.weight @q_proj.weight : tensor<64x64xf32>
    %y = llm.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
    ```
    After `weights=f8E4M3FN inputs=f8E4M3FN`:
    ```mlir
    %y = llm.linear %x, %w {llm.quantization = #llm.quantization<weight = f8E4M3FN, group = 0, input = f8E4M3FN>} : ...
    ```
  }];
  let options = [
    Option<"weights", "weights", "std::string", /*default=*/"\"f8E4M3FN\"",
           "type of the weights' codes: f8E4M3FN, i8 or i4">,
    Option<"inputs", "inputs", "std::string", /*default=*/"\"\"",
           "type of the inputs' codes; empty: inputs stay as they are">,
    Option<"group", "group", "int64_t", /*default=*/"0",
           "in features that share a scale; 0: all of an out feature">,
    Option<"zeros", "zeros", "bool", /*default=*/"false",
           "codes have zero points, which the checkpoint stores">,
    ListOption<"exclude", "exclude", "std::string",
               "globs of parameters or modules that stay as they are">,
    Option<"lmHead", "lm-head", "bool", /*default=*/"false",
           "quantize the linear that makes the logits too">
  ];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def LlmLowerQuantization : Pass<"llm-lower-quantization", "::mlir::ModuleOp"> {
  let summary = "turns marked linears into linears of codes and scales";
  let description = [{
    Replaces each `llm.linear` marked by `llm-assign-quantization` by an
    `llm.scaled_linear`. Its weight becomes two parameters, codes and scales, whose
    recipes quantize what the old recipe makes: the engine writer does it while the
    rows stream. They are called as the old parameter (with `.quantized` behind it
    where something else still reads that one) and the same with `_scale`, and, of codes
    with zero points, with `_zero`. An input with a code type gets an
    `llm.dynamic_scale` of its rows and an `llm.quantize`.

    Preconditions: projections merged, so that what merges them need not know scales.

    Before:
    ```mlir
    %y = llm.linear %x, %w {llm.quantization = #llm.quantization<weight = f8E4M3FN, group = 0, input = f8E4M3FN>} : ...
    ```
    After:
    ```mlir
    llm.parameter @q.weight : tensor<64x64xf8E4M3FN> from #llm.codes<#llm.source<"q.weight">, to = f8E4M3FN, group = 0>
    llm.parameter @q.weight_scale : tensor<64x1xf32> from #llm.scales<#llm.source<"q.weight">, to = f8E4M3FN, group = 0>
    ...
    %s = llm.dynamic_scale %x {group = 0 : i64, limit = 448.0 : f64} : tensor<?x64xf32> -> tensor<?x1xf32>
    %c = llm.quantize %x, %s : tensor<?x64xf32>, tensor<?x1xf32> -> tensor<?x64xf8E4M3FN>
    %y = llm.scaled_linear %c, %w weight_scale(%ws : tensor<64x1xf32>) input_scale(%s : tensor<?x1xf32>) : ...
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

#endif // LLMC_PASSES_OPTIMIZE_TD
