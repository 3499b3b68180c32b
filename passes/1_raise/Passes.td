// Passes of the phase `raise`.
#ifndef LLMC_PASSES_RAISE_TD
#define LLMC_PASSES_RAISE_TD

include "mlir/Pass/PassBase.td"

def LlmVerifyContract : Pass<"llm-verify-contract", "::mlir::ModuleOp"> {
  let summary = "checks what a frontend hands over";
  let description = [{
    The exit contract of every frontend, and the only assumption of all passes behind
    it. A frontend is done when this pass accepts its module:

    - `@step` is `(tensor<?xi32>, tensor<?xi32>) -> tensor<?xVxf32>`: token ids and
      positions of one sequence to logits, with the batch dimension folded away, in
      one block.
    - Ops are on this list: `llm.parameter`, `weight`, `embedding`, `linear`,
      `matmul`, `broadcast`, `transpose`, `reduce`, `activation`, `glu`, `rms_norm`,
      `layer_norm`, `rope_table`, `rope`, `attention`, `moe_route`, `moe_mlp`;
      `tensor.cast`, `collapse_shape`, `concat`, `dim`, `expand_shape`,
      `extract_slice`; all of `arith` and `math`. Caches, kernels, quantized and
      sharded ops come from later passes only.
    - Every value is a tensor of f32, i32 or i1, or an index. Casts of the source
      model to its storage type have disappeared.

    The pass changes nothing. Each error names the module path and the source line of
    the model, taken from the op's location, and what to do.
  }];
}

def LlmRaiseNorm : Pass<"llm-raise-norm", "::mlir::ModuleOp"> {
  let summary = "raises written-out RMS and layer norms";
  let description = [{
    Turns the arithmetic of a norm into `llm.rms_norm` or `llm.layer_norm`, so that
    later passes see one op with its statistics in float32 instead of six.

    A norm is raised a step at a time, each step an identity of algebra:
    `x * rsqrt(mean(x^2) + eps)` is an RMS norm without gamma; a vector multiplied on
    becomes gamma; an RMS norm of `x - mean(x)` is a layer norm; a vector added to
    that becomes beta. Operands may stand in either order, squares may be products or
    powers, means may be sums divided by the size, and the inverse root may be a
    division. A constant added to a weight (Gemma scales by `1 + w`) moves into the
    recipe of a new parameter.

    Preconditions: equal values are one value (run `cse` before), since `x` must be
    seen to be the same in the statistics and in the product.

    Before:
    ```mlir
    %sq = arith.mulf %x, %x : tensor<?x64xf32>
    %ms = llm.reduce mean %sq {dims = array<i64: 1>} : tensor<?x64xf32> -> tensor<?x1xf32>
    %e  = arith.addf %ms, %eps : tensor<?x1xf32>
    %r  = math.rsqrt %e : tensor<?x1xf32>
    %rb = llm.broadcast %r : tensor<?x1xf32> -> tensor<?x64xf32>
    %n  = arith.mulf %x, %rb : tensor<?x64xf32>
    %gb = llm.broadcast %g sizes(%t) : tensor<64xf32> -> tensor<?x64xf32>
    %y  = arith.mulf %gb, %n : tensor<?x64xf32>
    ```
    After:
    ```mlir
    %y = llm.rms_norm %x, %g {eps = 1.0e-5 : f64} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def LlmRaiseRopeTable : Pass<"llm-raise-rope-table", "::mlir::ModuleOp"> {
  let summary = "computes gathered tables of sines and cosines";
  let description = [{
    GPT-J and CodeGen store sin(p f) and cos(p f) of every position p as a constant
    table and gather the rows of a step's positions. This pass recovers the
    frequencies f from the table, checks every element of it against them, and
    computes the rows instead, so that `llm-raise-rope` sees a rotation and the engine
    stores F frequencies instead of a table of all positions.

    Preconditions: the table is a parameter with a value, [P, 2F] in float32, sines
    first or cosines first; what is gathered is read as its two halves. Any other
    gather stays as it is: learned positions, and tables that are added, are none of
    this pass's business.

    Before:
    ```mlir
    llm.parameter @table : tensor<256x8xf32> = dense<...> : tensor<256x8xf32>
    %w = llm.weight @table : tensor<256x8xf32>
    %r = llm.embedding %positions, %w : tensor<?xi32>, tensor<256x8xf32> -> tensor<?x8xf32>
    %s = tensor.extract_slice %r[0, 0] [%t, 4] [1, 1] : tensor<?x8xf32> to tensor<?x4xf32>
    %c = tensor.extract_slice %r[0, 4] [%t, 4] [1, 1] : tensor<?x8xf32> to tensor<?x4xf32>
    ```
    After:
    ```mlir
    llm.parameter @table.inv_freq : tensor<4xf32> = dense<...> : tensor<4xf32>
    %f = llm.weight @table.inv_freq : tensor<4xf32>
    %a = arith.mulf %positions_as_columns, %f_as_rows : tensor<?x4xf32>
    %s = math.sin %a : tensor<?x4xf32>
    %c = math.cos %a : tensor<?x4xf32>
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def LlmRaiseRope : Pass<"llm-raise-rope", "::mlir::func::FuncOp"> {
  let summary = "raises rotary position embeddings";
  let description = [{
    Replaces every rotation of head elements by position-dependent angles with
    `llm.rope`, and the cosines and sines with one `llm.rope_table` for each distinct
    set of angles.

    Models write rotations in many ways: rotate-half by slice and concatenation,
    interleaved pairs by strided slices and a stack, halves handled apart, tables that
    are concatenated, repeated or sliced, heads in front of tokens or behind, only a
    part of each head. The pass does not match these spellings. It evaluates each
    element of a head symbolically to a sum of products of elements and angles, and
    compares the sums with the definition of `llm.rope`: whatever computes a rotation
    is raised, whatever does not stays.

    A cosine or sine that remains is an error: it would silently be computed outside
    the table. The error names the value and the first element of the head that
    differs from a rotation.

    Preconditions: norms of queries and keys are raised (`llm-raise-norm`).

    Before:
    ```mlir
    %f  = arith.mulf %positions_f, %inv_freq_b : tensor<?x8xf32>
    %ff = tensor.concat dim(1) %f, %f : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x16xf32>
    %c  = math.cos %ff : tensor<?x16xf32>
    ...
    %n  = arith.negf %upper : tensor<4x?x8xf32>
    %r  = tensor.concat dim(2) %n, %lower : (tensor<4x?x8xf32>, tensor<4x?x8xf32>) -> tensor<4x?x16xf32>
    %rs = arith.mulf %r, %sb : tensor<4x?x16xf32>
    %qr = arith.addf %qc, %rs : tensor<4x?x16xf32>
    %q1 = llm.transpose %qr {permutation = array<i64: 1, 0, 2>} : tensor<4x?x16xf32> -> tensor<?x4x16xf32>
    ```
    After:
    ```mlir
    %cos, %sin = llm.rope_table %positions, %inv_freq {attention_scaling = 1.0 : f64} : tensor<?xi32>, tensor<8xf32> -> tensor<?x8xf32>
    ...
    %q1 = llm.rope half %q, %cos, %sin : tensor<?x4x16xf32>, tensor<?x8xf32> -> tensor<?x4x16xf32>
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect", "::mlir::tensor::TensorDialect"];
}

def LlmRaiseGlu : Pass<"llm-raise-glu", "::mlir::func::FuncOp"> {
  let summary = "raises activations and gated linear units";
  let description = [{
    First raises written-out activations to `llm.activation`: sigmoid and silu by
    exponentials, silu and quick GELU as `x * sigmoid(..)`, GELU by erf and by tanh in
    any order of their factors, relu, and the square of relu. Then turns
    `activation(gate) * up` into `llm.glu`, the form that merges with the projections
    in front of it.

    An activation that something else also reads, and one that is multiplied by a
    scalar or a vector, stay as they are.

    Before:
    ```mlir
    %a = llm.activation silu %gate : tensor<?x128xf32> -> tensor<?x128xf32>
    %y = arith.mulf %a, %up : tensor<?x128xf32>
    ```
    After:
    ```mlir
    %y = llm.glu silu %gate, %up : tensor<?x128xf32>, tensor<?x128xf32> -> tensor<?x128xf32>
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def LlmRaiseAttention : Pass<"llm-raise-attention", "::mlir::func::FuncOp"> {
  let summary = "absorbs into llm.attention what it can express";
  let description = [{
    - Keys and values whose heads are copies (`repeat_kv`: expand, broadcast,
      collapse, in whatever layout) become grouped heads, so that the KV cache holds
      each head once.
    - A constant that scales queries or keys, before or behind their rope, moves into
      the attention's `scale`.
    - Transposes between `[heads, T, D]` and `[T, heads, D]` cancel.

    Preconditions: `llm-raise-rope` has run.

    Before:
    ```mlir
    %s = arith.mulf %q, %eighth : tensor<?x4x64xf32>
    %o = llm.attention %s, %k, %v {scale = 1.0 : f64, causal} : tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32> -> tensor<?x4x64xf32>
    ```
    After:
    ```mlir
    %o = llm.attention %q, %k, %v {scale = 0.125 : f64, causal} : tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32> -> tensor<?x4x64xf32>
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect", "::mlir::tensor::TensorDialect"];
}

#endif // LLMC_PASSES_RAISE_TD
