// RUN: llmc-opt %s --split-input-file --llm-raise-glu | FileCheck %s

// CHECK-LABEL: func @silu_by_exp
// CHECK-SAME: %[[GATE:.*]]: tensor<?x8xf32>, %[[UP:.*]]: tensor<?x8xf32>
// CHECK: %[[Y:.*]] = llm.glu silu %[[GATE]], %[[UP]]
// CHECK-NEXT: return %[[Y]]
func.func @silu_by_exp(%gate: tensor<?x8xf32>, %up: tensor<?x8xf32>, %t: index) -> tensor<?x8xf32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  %ob = llm.broadcast %one sizes(%t) : tensor<f32> -> tensor<?x8xf32>
  %n = arith.negf %gate : tensor<?x8xf32>
  %e = math.exp %n : tensor<?x8xf32>
  %d = arith.addf %ob, %e : tensor<?x8xf32>
  %s = arith.divf %gate, %d : tensor<?x8xf32>
  %y = arith.mulf %up, %s : tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// Sigmoid, then silu and quick GELU made of it.
// CHECK-LABEL: func @self_gates
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
// CHECK-DAG: %[[A:.*]] = llm.activation silu %[[X]]
// CHECK-DAG: %[[B:.*]] = llm.activation gelu_quick %[[X]]
// CHECK: return %[[A]], %[[B]]
func.func @self_gates(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %one = arith.constant dense<1.0> : tensor<4x8xf32>
  %c = arith.constant dense<1.702> : tensor<4x8xf32>
  %n = arith.negf %x : tensor<4x8xf32>
  %e = math.exp %n : tensor<4x8xf32>
  %d = arith.addf %e, %one : tensor<4x8xf32>
  %s = arith.divf %one, %d : tensor<4x8xf32>
  %silu = arith.mulf %s, %x : tensor<4x8xf32>
  %xc = arith.mulf %x, %c : tensor<4x8xf32>
  %sc = llm.activation sigmoid %xc : tensor<4x8xf32> -> tensor<4x8xf32>
  %quick = arith.mulf %x, %sc : tensor<4x8xf32>
  return %silu, %quick : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// GELU by erf and by tanh, with factors in the orders that models use.
// CHECK-LABEL: func @gelus
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
// CHECK-DAG: %[[A:.*]] = llm.activation gelu %[[X]]
// CHECK-DAG: %[[B:.*]] = llm.activation gelu_tanh %[[X]]
// CHECK: return %[[A]], %[[B]]
func.func @gelus(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %half = arith.constant dense<0.5> : tensor<4x8xf32>
  %one = arith.constant dense<1.0> : tensor<4x8xf32>
  %root2 = arith.constant dense<1.41421354> : tensor<4x8xf32>
  %root = arith.constant dense<0.797884583> : tensor<4x8xf32>
  %cubic = arith.constant dense<4.471500e-02> : tensor<4x8xf32>
  %xr = arith.divf %x, %root2 : tensor<4x8xf32>
  %erf = math.erf %xr : tensor<4x8xf32>
  %e1 = arith.addf %erf, %one : tensor<4x8xf32>
  %xh = arith.mulf %x, %half : tensor<4x8xf32>
  %gelu = arith.mulf %xh, %e1 : tensor<4x8xf32>
  %x2 = arith.mulf %x, %x : tensor<4x8xf32>
  %x3 = arith.mulf %x2, %x : tensor<4x8xf32>
  %c3 = arith.mulf %x3, %cubic : tensor<4x8xf32>
  %in = arith.addf %x, %c3 : tensor<4x8xf32>
  %ins = arith.mulf %root, %in : tensor<4x8xf32>
  %tanh = math.tanh %ins : tensor<4x8xf32>
  %t1 = arith.addf %one, %tanh : tensor<4x8xf32>
  %hx = arith.mulf %half, %x : tensor<4x8xf32>
  %new = arith.mulf %t1, %hx : tensor<4x8xf32>
  return %gelu, %new : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func @relu2
// CHECK: %[[Y:.*]] = llm.activation relu2 %arg0
// CHECK-NEXT: return %[[Y]]
func.func @relu2(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant dense<0.0> : tensor<4x8xf32>
  %r = arith.maximumf %x, %zero : tensor<4x8xf32>
  %y = arith.mulf %r, %r : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// No gate: the activation has another reader, or the factor is repeated only.
// CHECK-LABEL: func @not_gated
// CHECK-NOT: llm.glu
func.func @not_gated(%x: tensor<?x8xf32>, %up: tensor<?x8xf32>, %v: tensor<8xf32>, %t: index) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %a = llm.activation silu %x : tensor<?x8xf32> -> tensor<?x8xf32>
  %y = arith.mulf %a, %up : tensor<?x8xf32>
  %b = llm.activation relu %x : tensor<?x8xf32> -> tensor<?x8xf32>
  %vb = llm.broadcast %v sizes(%t) : tensor<8xf32> -> tensor<?x8xf32>
  %z = arith.mulf %b, %vb : tensor<?x8xf32>
  return %a, %y, %z : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}
