// RUN: not llmc-opt %s --llm-verify-contract 2>&1 | FileCheck %s

// The error names the module path and the source line that the op's location holds.
// CHECK: modeling_llama.py:12:3: error: expected only ops of a dense llm graph, found 'tensor.empty' in model.layers.0.mlp (modeling_llama.py:12); convert it in the frontend (frontends/convert/ops)
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x16xf32> {
  %c4 = arith.constant 4 : index
  %y = tensor.empty(%c4) : tensor<?x16xf32> loc("model.layers.0.mlp"("modeling_llama.py":12:3))
  return %y : tensor<?x16xf32>
}
