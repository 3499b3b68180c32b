// RUN: llmc-opt %s --split-input-file --llm-raise-norm | FileCheck %s

// Llama's norm: gamma is multiplied on from the left.
// CHECK-LABEL: func @llama
// CHECK-SAME: %[[X:.*]]: tensor<?x64xf32>
// CHECK: %[[G:.*]] = llm.weight @norm
// CHECK-NEXT: %[[Y:.*]] = llm.rms_norm %[[X]], %[[G]] {eps = 1.000000e-05 : f64}
// CHECK-NEXT: return %[[Y]]
llm.parameter @norm : tensor<64xf32> from #llm.source<"norm">
func.func @llama(%x: tensor<?x64xf32>, %t: index) -> tensor<?x64xf32> {
  %g = llm.weight @norm : tensor<64xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<f32>
  %sq = arith.mulf %x, %x : tensor<?x64xf32>
  %ms = llm.reduce mean %sq {dims = array<i64: 1>} : tensor<?x64xf32> -> tensor<?x1xf32>
  %eb = llm.broadcast %eps sizes(%t) : tensor<f32> -> tensor<?x1xf32>
  %e = arith.addf %ms, %eb : tensor<?x1xf32>
  %r = math.rsqrt %e : tensor<?x1xf32>
  %rb = llm.broadcast %r : tensor<?x1xf32> -> tensor<?x64xf32>
  %n = arith.mulf %x, %rb : tensor<?x64xf32>
  %gb = llm.broadcast %g sizes(%t) : tensor<64xf32> -> tensor<?x64xf32>
  %y = arith.mulf %gb, %n : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// Every other spelling: a power, a sum over the size, division by the root, gamma from
// the right, a norm of heads (rank 3).
// CHECK-LABEL: func @spellings
// CHECK: llm.rms_norm %{{.*}}, %{{.*}} {eps = 9.9999999999999995E-7 : f64} : tensor<?x4x16xf32>, tensor<16xf32>
// CHECK-NEXT: return
func.func @spellings(%x: tensor<?x4x16xf32>, %g: tensor<16xf32>, %t: index) -> tensor<?x4x16xf32> {
  %eps = arith.constant dense<1.0e-6> : tensor<f32>
  %two = arith.constant dense<2.0> : tensor<f32>
  %size = arith.constant dense<16.0> : tensor<f32>
  %tb = llm.broadcast %two sizes(%t) : tensor<f32> -> tensor<?x4x16xf32>
  %sq = math.powf %x, %tb : tensor<?x4x16xf32>
  %sum = llm.reduce sum %sq {dims = array<i64: 2>} : tensor<?x4x16xf32> -> tensor<?x4x1xf32>
  %sb = llm.broadcast %size sizes(%t) : tensor<f32> -> tensor<?x4x1xf32>
  %ms = arith.divf %sum, %sb : tensor<?x4x1xf32>
  %eb = llm.broadcast %eps sizes(%t) : tensor<f32> -> tensor<?x4x1xf32>
  %e = arith.addf %eb, %ms : tensor<?x4x1xf32>
  %r = math.sqrt %e : tensor<?x4x1xf32>
  %rb = llm.broadcast %r : tensor<?x4x1xf32> -> tensor<?x4x16xf32>
  %n = arith.divf %x, %rb : tensor<?x4x16xf32>
  %gb = llm.broadcast %g sizes(%t) : tensor<16xf32> -> tensor<?x4x16xf32>
  %y = arith.mulf %n, %gb : tensor<?x4x16xf32>
  return %y : tensor<?x4x16xf32>
}

// -----

// Gemma scales by 1 + w: the 1 moves into the recipe, and w itself is gone.
// CHECK: llm.parameter @norm.offset : tensor<64xf32> from #llm.offset<#llm.source<"norm">, 1.000000e+00 : f32>
// CHECK-NOT: llm.parameter
// CHECK-LABEL: func @gemma
// CHECK: %[[G:.*]] = llm.weight @norm.offset
// CHECK: llm.rms_norm %{{.*}}, %[[G]]
llm.parameter @norm : tensor<64xf32> from #llm.source<"norm">
func.func @gemma(%x: tensor<?x64xf32>, %t: index) -> tensor<?x64xf32> {
  %w = llm.weight @norm : tensor<64xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<f32>
  %one = arith.constant dense<1.0> : tensor<f32>
  %ob = llm.broadcast %one : tensor<f32> -> tensor<64xf32>
  %g = arith.addf %ob, %w : tensor<64xf32>
  %sq = arith.mulf %x, %x : tensor<?x64xf32>
  %ms = llm.reduce mean %sq {dims = array<i64: 1>} : tensor<?x64xf32> -> tensor<?x1xf32>
  %eb = llm.broadcast %eps sizes(%t) : tensor<f32> -> tensor<?x1xf32>
  %e = arith.addf %ms, %eb : tensor<?x1xf32>
  %r = math.rsqrt %e : tensor<?x1xf32>
  %rb = llm.broadcast %r : tensor<?x1xf32> -> tensor<?x64xf32>
  %n = arith.mulf %x, %rb : tensor<?x64xf32>
  %gb = llm.broadcast %g sizes(%t) : tensor<64xf32> -> tensor<?x64xf32>
  %y = arith.mulf %n, %gb : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// A layer norm is an RMS norm of centred values; beta is what is added to it.
// CHECK-LABEL: func @layer_norm
// CHECK-SAME: %[[X:.*]]: tensor<?x64xf32>, %[[G:.*]]: tensor<64xf32>, %[[B:.*]]: tensor<64xf32>
// CHECK: %[[Y:.*]] = llm.layer_norm %[[X]] gamma(%[[G]]) beta(%[[B]]) {eps = 1.000000e-05 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @layer_norm(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %b: tensor<64xf32>, %t: index) -> tensor<?x64xf32> {
  %eps = arith.constant dense<1.0e-5> : tensor<f32>
  %m = llm.reduce mean %x {dims = array<i64: 1>} : tensor<?x64xf32> -> tensor<?x1xf32>
  %mb = llm.broadcast %m : tensor<?x1xf32> -> tensor<?x64xf32>
  %c = arith.subf %x, %mb : tensor<?x64xf32>
  %sq = arith.mulf %c, %c : tensor<?x64xf32>
  %var = llm.reduce mean %sq {dims = array<i64: 1>} : tensor<?x64xf32> -> tensor<?x1xf32>
  %eb = llm.broadcast %eps sizes(%t) : tensor<f32> -> tensor<?x1xf32>
  %e = arith.addf %var, %eb : tensor<?x1xf32>
  %r = math.rsqrt %e : tensor<?x1xf32>
  %rb = llm.broadcast %r : tensor<?x1xf32> -> tensor<?x64xf32>
  %n = arith.mulf %c, %rb : tensor<?x64xf32>
  %gb = llm.broadcast %g sizes(%t) : tensor<64xf32> -> tensor<?x64xf32>
  %s = arith.mulf %gb, %n : tensor<?x64xf32>
  %bb = llm.broadcast %b sizes(%t) : tensor<64xf32> -> tensor<?x64xf32>
  %y = arith.addf %s, %bb : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// A mean over rows is no norm, and neither is one of something else than x.
// CHECK-LABEL: func @not_a_norm
// CHECK-NOT: llm.rms_norm
func.func @not_a_norm(%x: tensor<64x64xf32>, %z: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %eps = arith.constant dense<1.0e-5> : tensor<64x1xf32>
  %eps0 = arith.constant dense<1.0e-5> : tensor<1x64xf32>
  %sq = arith.mulf %x, %x : tensor<64x64xf32>
  %ms0 = llm.reduce mean %sq {dims = array<i64: 0>} : tensor<64x64xf32> -> tensor<1x64xf32>
  %e0 = arith.addf %ms0, %eps0 : tensor<1x64xf32>
  %r0 = math.rsqrt %e0 : tensor<1x64xf32>
  %rb0 = llm.broadcast %r0 : tensor<1x64xf32> -> tensor<64x64xf32>
  %n0 = arith.mulf %x, %rb0 : tensor<64x64xf32>
  %ms = llm.reduce mean %sq {dims = array<i64: 1>} : tensor<64x64xf32> -> tensor<64x1xf32>
  %e = arith.addf %ms, %eps : tensor<64x1xf32>
  %r = math.rsqrt %e : tensor<64x1xf32>
  %rb = llm.broadcast %r : tensor<64x1xf32> -> tensor<64x64xf32>
  %n = arith.mulf %z, %rb : tensor<64x64xf32>
  return %n0, %n : tensor<64x64xf32>, tensor<64x64xf32>
}
