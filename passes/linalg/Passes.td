// Passes of the phase `linalg`.
#ifndef LLMC_PASSES_LINALG_TD
#define LLMC_PASSES_LINALG_TD

include "mlir/Pass/PassBase.td"

def ConvertLlmToLinalg : Pass<"convert-llm-to-linalg", "::mlir::ModuleOp"> {
  let summary = "the executable meaning of every llm op";
  let description = [{
    Lowers a module of any stage of the `llm` level, dense or paged, with kernels
    outlined or not, to linalg, tensor, scf and arith. What the result computes is
    what the module means: a pass is right when the meaning is the same before and
    after it. Products, statistics and softmax are in float32 whatever the
    element types.

    * Each parameter becomes an argument of every public function that reads
      weights, after the function's own, in symbol order, with the attribute
      `llm.parameter = @name`. Parameters with a value become constants. The
      `layout` of a parameter is not looked at.
    * `!llm.batch` becomes memrefs query_start, kv_len, block_table, slots;
      `!llm.kv` becomes memrefs K and V `[num_blocks, heads, block, dim]`;
      `!llm.kv_cache` becomes those of all layers in order. `llm.kv_append` stores
      into them.
    * `llm.kernel` becomes a private function, `llm.launch` a call, `llm.group` its
      body.

    Collectives are the identity for one rank and an error for more.

    ```mlir
    func.func @step(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
      %y = llm.activation relu %x : tensor<?x4xf32> -> tensor<?x4xf32>
      return %y : tensor<?x4xf32>
    }
    // becomes
    func.func @step(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
      %y = linalg.generic {...} ins(%x) outs(%empty) { arith.maximumf ... }
      return %y : tensor<?x4xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

#endif // LLMC_PASSES_LINALG_TD
