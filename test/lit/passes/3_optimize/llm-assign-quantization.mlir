// RUN: llmc-opt %s --llm-assign-quantization="weights=f8E4M3FN inputs=f8E4M3FN" | FileCheck %s
// RUN: llmc-opt %s --llm-assign-quantization="weights=i4 group=4 lm-head=true exclude=*.down_proj" | FileCheck %s --check-prefix=HEAD

// RUN: llmc-opt %s --llm-assign-quantization="weights=i4 group=4 zeros=true" | FileCheck %s --check-prefix=ZEROS
// ZEROS: llm.linear {{.*}} {llm.quantization = #llm.quantization<weight = i4, group = 4, zeros = true>}

// All but the linear that makes the logits, whatever follows it.
// CHECK: llm.linear {{.*}} {llm.quantization = #llm.quantization<weight = f8E4M3FN, group = 0, input = f8E4M3FN>} : {{.*}} tensor<8x8xf32>
// CHECK: llm.linear {{.*}} {llm.quantization = #llm.quantization<weight = f8E4M3FN, group = 0, input = f8E4M3FN>} : {{.*}} tensor<8x8xf32>
// CHECK: llm.linear %{{[^{]*}} : tensor<?x8xf32>, tensor<16x8xf32>

// HEAD: llm.linear {{.*}} {llm.quantization = #llm.quantization<weight = i4, group = 4>} : {{.*}} tensor<8x8xf32>
// HEAD: llm.linear %{{[^{]*}} : tensor<?x8xf32>, tensor<8x8xf32>
// HEAD: llm.linear {{.*}} {llm.quantization = #llm.quantization<weight = i4, group = 4>} : {{.*}} tensor<16x8xf32>
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
