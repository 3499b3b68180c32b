// RUN: not llmc-opt %s --llm-assign-quantization="exclude=*.up_proj" 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: not llmc-opt %s --llm-assign-quantization="exclude=layers.*" 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: not llmc-opt %s --llm-assign-quantization="weights=i4 group=3" 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not llmc-opt %s --llm-assign-quantization="weights=f32" 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not llmc-opt %s --llm-assign-quantization="weights=codes" 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: not llmc-opt %s --llm-assign-quantization="exclude=a[" 2>&1 | FileCheck %s --check-prefix=GLOB

// UNUSED: exclude pattern '*.up_proj' names no linear; linears are called 'layers.0.q_proj.weight', 'layers.0.down_proj.weight', 'lm_head.weight'
// ALL: nothing is left to quantize: all 3 linears are excluded or make the logits
// GROUP: 'layers.0.q_proj.weight' has 8 in features, which groups of 3 do not divide; exclude it or choose another format
// TYPE: expected codes of type f8E4M3FN, i8 or i4, got 'f32'
// TEXT: expected types as weights and inputs, found 'codes' and ''
// GLOB: exclude pattern 'a['
func.func @step(%x: tensor<?x8xf32>) -> tensor<?x16xf32> {
  %wq = llm.weight @layers.0.q_proj.weight : tensor<8x8xf32>
  %wd = llm.weight @layers.0.down_proj.weight : tensor<8x8xf32>
  %wh = llm.weight @lm_head.weight : tensor<16x8xf32>
  %cap = arith.constant dense<2.0> : tensor<16xf32>
  %c0 = arith.constant 0 : index
  %t = tensor.dim %x, %c0 : tensor<?x8xf32>
  %q = llm.linear %x, %wq : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a = llm.activation silu %q : tensor<?x8xf32> -> tensor<?x8xf32>
  %d = llm.linear %a, %wd : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %n = llm.rms_norm %d {eps = 1.0e-6 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  %y = llm.linear %n, %wh : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  %b = llm.broadcast %cap sizes(%t) : tensor<16xf32> -> tensor<?x16xf32>
  %z = arith.mulf %y, %b : tensor<?x16xf32>
  return %z : tensor<?x16xf32>
}
llm.parameter @layers.0.q_proj.weight : tensor<8x8xf32> from #llm.source<"q">
llm.parameter @layers.0.down_proj.weight : tensor<8x8xf32> from #llm.source<"d">
llm.parameter @lm_head.weight : tensor<16x8xf32> from #llm.source<"h">
