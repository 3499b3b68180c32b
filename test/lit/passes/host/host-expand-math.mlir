// RUN: llmc-opt %s --host-expand-math | FileCheck %s

// The sum may be reordered; the polynomial of exp may not.
// CHECK-LABEL: func.func @f
// CHECK: arith.addf {{.*}} fastmath<reassoc,nsz,contract>
// CHECK-NOT: math.exp
// CHECK-NOT: fastmath
// Angles are large: cosine stays.
// CHECK: math.cos
func.func @f(%x: f32) -> (f32, f32) {
  %s = arith.addf %x, %x : f32
  %e = math.exp %s : f32
  %c = math.cos %s : f32
  return %e, %c : f32, f32
}

// CHECK-LABEL: func.func @ordered
// CHECK: arith.addf {{.*}} fastmath<nsz,contract>
func.func @ordered(%x: f32) -> f32 attributes {host.ordered_sums} {
  %s = arith.addf %x, %x : f32
  return %s : f32
}
