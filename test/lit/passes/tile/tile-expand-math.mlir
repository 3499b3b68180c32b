// RUN: llmc-opt %s --tile-expand-math | FileCheck %s

// Tests that exp is one multiplication and one instruction.
// CHECK-LABEL: @exp
// CHECK: %[[T:.*]] = arith.mulf
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[T]])
func.func @exp(%x: f32) -> f32 {
  %y = math.exp %x : f32
  return %y : f32
}

// Tests that vectors are taken apart.
// CHECK-LABEL: @rsqrt
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"
func.func @rsqrt(%x: vector<2xf32>) -> vector<2xf32> {
  %y = math.rsqrt %x : vector<2xf32>
  return %y : vector<2xf32>
}

// Tests that the angle of cos is reduced in f64.
// CHECK-LABEL: @cos
// CHECK: arith.extf %{{.*}} : f32 to f64
// CHECK: math.roundeven %{{.*}} : f64
// CHECK: arith.truncf %{{.*}} : f64 to f32
// CHECK: llvm.call_intrinsic "llvm.nvvm.cos.approx.f"
func.func @cos(%x: f32) -> f32 {
  %y = math.cos %x : f32
  return %y : f32
}
