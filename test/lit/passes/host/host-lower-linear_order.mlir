// Whatever the number of rows of a block, each sum is one chain of multiply-adds
// in the order of the depth.
// RUN: llmc-opt %s --host-lower-linear | FileCheck %s

// CHECK-LABEL: func.func @plain
// CHECK-SAME: host.ordered_sums
// CHECK: scf.for {{.*}} to %c96{{[_0-9]*}} step %c1{{[_0-9]*}} iter_args
// CHECK-NOT: prefetch
// CHECK-COUNT-24: vector.fma
// CHECK-NEXT: scf.yield
// CHECK: scf.for {{.*}} to %c96{{[_0-9]*}} step %c1{{[_0-9]*}} iter_args
// CHECK-COUNT-16: vector.fma
// CHECK-NEXT: scf.yield
// CHECK: scf.for {{.*}} to %c96{{[_0-9]*}} step %c1{{[_0-9]*}} iter_args
// CHECK-COUNT-8: vector.fma
// CHECK-NEXT: scf.yield
// CHECK: scf.for {{.*}} to %c96{{[_0-9]*}} step %c1{{[_0-9]*}} iter_args
// CHECK-COUNT-1: memref.prefetch
// CHECK-COUNT-4: vector.fma
// CHECK-NEXT: scf.yield
// CHECK: scf.for {{.*}} to %c96{{[_0-9]*}} step %c1{{[_0-9]*}} iter_args
// CHECK-COUNT-1: memref.prefetch
// CHECK-COUNT-2: vector.fma
// CHECK-NEXT: scf.yield
// CHECK-NOT: vector.fma
llm.kernel @plain(%x: tensor<?x96xf32>, %w: tensor<32x96xbf16> {llm.layout = #llm.panels<rows = 32, group = 1>}) -> tensor<?x32xf32> attributes {anchor = "linear"} {
  %y = llm.linear %x, %w : tensor<?x96xf32>, tensor<32x96xbf16> -> tensor<?x32xf32>
  llm.yield %y : tensor<?x32xf32>
}
