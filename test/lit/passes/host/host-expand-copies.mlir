// RUN: llmc-opt %s --host-expand-copies | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NOT: memref.copy
// CHECK: linalg.generic
func.func @f(%a: memref<4x8xf32>, %b: memref<4x8xf32, strided<[16, 1]>>) {
  memref.copy %a, %b : memref<4x8xf32> to memref<4x8xf32, strided<[16, 1]>>
  return
}
