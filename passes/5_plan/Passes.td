// Passes of the phase `plan`.
#ifndef LLMC_PASSES_PLAN_TD
#define LLMC_PASSES_PLAN_TD

include "mlir/Pass/PassBase.td"

def LlmPlanMemory : Pass<"llm-plan-memory", "::mlir::ModuleOp"> {
  let summary = "gives every launch result its place in the arena";
  let description = [{
    All activations live in one arena. This pass computes the size of every launch
    result when the step is as large as the engine allows (T = max-num-tokens,
    R = S = max-batch-size), its lifetime in launches, and an offset such that values
    that live at the same time do not overlap. The workspace that a kernel asks for
    (`workspace`) lives for its launch. Sizes are propagated from the arguments of
    @step; one that does not follow from them is an error.

    A result takes over the buffer of an operand (`tied`) when the operand has the
    same type, dies at the launch, is passed once, and the kernel reads it element by
    element for its only result. So the residual stream stays in place.

    `llm.arena_bytes` is the size of the arena, `llm.arena_peak` the most aligned
    bytes live at one launch, `llm.arena_lower_bound` the same without alignment.

    Preconditions: `llm-outline-kernels` has run.

    ```mlir
    // before
    %n = llm.launch @norm_0(%h, %g) : (tensor<?x576xf32>, tensor<576xf32>) -> tensor<?x576xbf16>
    %y = llm.launch @linear_0(%n, %w, %h) : (tensor<?x576xbf16>, tensor<576x576xbf16>, tensor<?x576xf32>) -> tensor<?x576xf32>

    // after, with max-num-tokens=16
    %n = llm.launch @norm_0(%h, %g) {offsets = array<i64: 36864>} : (tensor<?x576xf32>, tensor<576xf32>) -> tensor<?x576xbf16>
    %y = llm.launch @linear_0(%n, %w, %h) {offsets = array<i64: 0>, tied = array<i64: 0, 2>} : (tensor<?x576xbf16>, tensor<576x576xbf16>, tensor<?x576xf32>) -> tensor<?x576xf32>
    ```
  }];
  let options = [
    Option<"maxNumTokens", "max-num-tokens", "int64_t", "2048",
           "most tokens of a step">,
    Option<"maxBatchSize", "max-batch-size", "int64_t", "32",
           "most sequences, and logit rows, of a step">,
    Option<"alignment", "alignment", "int64_t", "256",
           "alignment of each buffer in bytes, a power of two">];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def LlmCheckMemoryPlan : Pass<"llm-check-memory-plan", "::mlir::ModuleOp"> {
  let summary = "proves that no two live values overlap";
  let description = [{
    Executes the launches of a planned @step in thought, keeping the set of values
    that are still to be read, and rejects a plan in which

    - a launch has no offsets, or no workspace_offset where its kernel needs one;
    - a range is not aligned or leaves the arena;
    - a launch writes over a value that is still to be read, or over another of its
      own results or its workspace;
    - a result is tied to an operand that is read again, that is no arena value, that
      is passed twice, that lies elsewhere, or that the kernel does not read element
      by element.

    The message names both values, their ranges and the launch. The pass shares the
    size of a value with `llm-plan-memory`, and nothing else. It changes no IR.

    Preconditions: the attributes of `llm-plan-memory` on @step.

    ```mlir
    // rejected: result #0 of @linear_0 (launch 2) at [1024, 37888) overlaps
    // result #0 of @norm_0 (launch 1) at [36864, 55296), which is live at launch 2
    %n = llm.launch @norm_0(%h, %g) {offsets = array<i64: 36864>} : ...
    %y = llm.launch @linear_0(%n, %w) {offsets = array<i64: 1024>} : ...
    ```
  }];
}

def LlmExportPlan : Pass<"llm-export-plan", "::mlir::ModuleOp"> {
  let summary = "writes the planned step as JSON";
  let description = [{
    Writes what the engine writer needs of a planned @step: buffers of the arena,
    inputs, outputs, KV cache, kernels and the launches in order, each with one
    abstract argument for each operand and result of its kernel. The schema is
    docs/plan-export.md. Code generation later replaces a launch by the launches of
    its kernel's variants.

    Without `output` the text becomes the attribute `llm.plan` of the module, where
    the driver reads it; with it the text goes to that file (`-` is standard output).

    Preconditions: the attributes of `llm-plan-memory`.

    ```mlir
    // @step, planned
    %n = llm.launch @norm_0(%h, %g) {offsets = array<i64: 36864>} : (tensor<?x576xf32>, tensor<576xf32>) -> tensor<?x576xbf16>

    // its entry under "launches"
    {"kernel": "norm_0", "operands": [ {"buffer": 0}, {"weight": "norm"} ], "results": [1], "workspace": null}
    ```
  }];
  let options = [Option<"output", "output", "std::string", "\"\"",
                        "file to write, or - for standard output">];
}

#endif // LLMC_PASSES_PLAN_TD
