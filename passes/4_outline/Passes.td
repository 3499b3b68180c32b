// Passes of the phase `outline`.
#ifndef LLMC_PASSES_OUTLINE_TD
#define LLMC_PASSES_OUTLINE_TD

include "mlir/Pass/PassBase.td"

def LlmAppendSampler : Pass<"llm-append-sampler", "::mlir::ModuleOp"> {
  let summary = "lets the step draw the next tokens itself";
  let description = [{
    Adds the sampling parameters of each logit row to the arguments of @step
    (temperature, top_k, top_p, min_p, seed, sample_index), and an `llm.sample` whose
    tokens @step returns behind the logits. A runtime that samples on the device need
    not wait for the logits of a step before it starts the next one.

    Preconditions: the paged form of @step, which returns float32 logits and nothing
    else.

    ```mlir
    // before
    func.func @step(..., %kv: !llm.kv_cache<...>) -> tensor<?x49152xf32> {
      return %logits : tensor<?x49152xf32>

    // after
    func.func @step(..., %kv: !llm.kv_cache<...>, %temperature: tensor<?xf32>, %top_k: tensor<?xi32>,
                    %top_p: tensor<?xf32>, %min_p: tensor<?xf32>, %seed: tensor<?xi64>,
                    %sample_index: tensor<?xi32>) -> (tensor<?x49152xf32>, tensor<?xi32>) {
      %next = llm.sample %logits, %temperature, %top_k, %top_p, %min_p, %seed, %sample_index : ...
      return %logits, %next : tensor<?x49152xf32>, tensor<?xi32>
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def LlmFormKernels : Pass<"llm-form-kernels", "::mlir::ModuleOp"> {
  let summary = "groups the ops of @step into future kernels";
  let description = [{
    Puts every op of @step into an `llm.group` whose anchor is a kernel kind of
    docs/architecture.md, section 1.3, so that one group is what one kernel of the
    code generators can run. Groups are in place: a reader sees the whole step, cut.

    What lies between a projection and the KV cache (slices, head norms, rotary
    embedding of query and key) becomes the layer's `rope_append`. Any other op
    joins the kernel that computes its youngest operand when it is the only reader
    and that kernel's epilogue can take it: a linear takes an activation or packed
    GLU, scales, then residual sums, then a conversion; a norm and an embedding take
    sums and conversions. Of a value with several readers, a conversion may join as
    a second result. A sum left without an epilogue is computed by the norm that
    reads it. Constants, sizes and other ops that depend on weights alone are copied
    into each group that uses them, as are views with several readers.

    Preconditions: the paged form of @step, precision assigned. An op that no kernel
    kind holds is an error at that op.

    ```mlir
    // before
    %w = llm.weight @o : tensor<576x576xbf16>
    %y = llm.linear %x, %w : tensor<?x576xbf16>, tensor<576x576xbf16> -> tensor<?x576xf32>
    %h1 = arith.addf %h, %y : tensor<?x576xf32>

    // after
    %w = llm.weight @o : tensor<576x576xbf16>
    %h1 = llm.group "linear" -> tensor<?x576xf32> {
      %y = llm.linear %x, %w : tensor<?x576xbf16>, tensor<576x576xbf16> -> tensor<?x576xf32>
      %s = arith.addf %h, %y : tensor<?x576xf32>
      llm.yield %s : tensor<?x576xf32>
    }
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def LlmOutlineKernels : Pass<"llm-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "turns groups into kernels and launches";
  let description = [{
    Moves the body of each `llm.group` into an `llm.kernel @<anchor>_<n>` and leaves
    an `llm.launch`. What the body used from outside becomes an argument, in order of
    first use. Groups that compute the same, whatever the layer, share one kernel:
    code generation works on a dozen kernels however deep the model is.

    Afterwards @step holds `llm.weight`, `llm.kv_layer`, `llm.launch` and `return`.

    Preconditions: `llm-form-kernels` has run, every op of @step is in a group.

    ```mlir
    // before
    %g = llm.weight @norm : tensor<576xf32>
    %y = llm.group "norm" -> tensor<?x576xbf16> {
      %n = llm.rms_norm %h, %g {eps = 1.0e-5 : f64} : tensor<?x576xf32>, tensor<576xf32> -> tensor<?x576xbf16>
      llm.yield %n : tensor<?x576xbf16>
    }

    // after
    llm.kernel @norm_0(%arg0: tensor<?x576xf32>, %arg1: tensor<576xf32>) -> tensor<?x576xbf16> attributes {anchor = "norm"} {
      %n = llm.rms_norm %arg0, %arg1 {eps = 1.0e-5 : f64} : tensor<?x576xf32>, tensor<576xf32> -> tensor<?x576xbf16>
      llm.yield %n : tensor<?x576xbf16>
    }
    // in @step
    %g = llm.weight @norm : tensor<576xf32>
    %y = llm.launch @norm_0(%h, %g) : (tensor<?x576xf32>, tensor<576xf32>) -> tensor<?x576xbf16>
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

#endif // LLMC_PASSES_OUTLINE_TD
