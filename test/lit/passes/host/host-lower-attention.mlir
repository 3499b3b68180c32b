// Online softmax over pages; a tile is 16 tokens, 3 heads each, of one KV head.
// RUN: llmc-opt %s --host-lower-attention | FileCheck %s

!kv = !llm.kv<heads = 3, head_dim = 64, v_head_dim = 64, block = 64, element = f32>

// CHECK-LABEL: func.func @attention(%{{.*}}: !llvm.ptr, %{{.*}}: i64)
// CHECK-SAME: {operand = 1 : i64, part = "k"}, {operand = 1 : i64, part = "v"}
// CHECK-SAME: host.column_tiles = 3 : i64
// CHECK-SAME: host.rows_per_tile = 16 : i64
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<48x64xf32>
// Sequences that meet the block of rows, then their pages.
// CHECK: scf.for
// CHECK: scf.if
// CHECK: scf.for
// Keys are transposed by shuffles, scores are products with them.
// CHECK: vector.shuffle
// CHECK: vector.fma
// The mask, the maximum, the weights.
// CHECK: arith.cmpi sgt
// CHECK: arith.select
// CHECK: vector.reduction <maxnumf>
// CHECK: math.exp
// CHECK: vector.fma
llm.kernel @attention(%q: tensor<?x576xf32>, %kv: !kv, %b: !llm.batch) -> tensor<?x9x64xf32> attributes {anchor = "attention"} {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %q, %c0 : tensor<?x576xf32>
  %q1 = tensor.expand_shape %q [[0], [1, 2]] output_shape [%t, 9, 64] : tensor<?x576xf32> into tensor<?x9x64xf32>
  %o = llm.paged_attention %q1, %kv, %b {scale = 0.125 : f64, causal} : tensor<?x9x64xf32>, !kv -> tensor<?x9x64xf32>
  llm.yield %o : tensor<?x9x64xf32>
}
