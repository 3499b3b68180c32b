// Handles become memrefs, parameters arguments, kernels functions.
// RUN: llmc-opt %s --convert-llm-to-linalg | FileCheck %s

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 8, block = 4, element = f32>

llm.parameter @w : tensor<16x16xbf16> from #llm.source<"w">
llm.parameter @freq : tensor<4xf32> = dense<1.0> : tensor<4xf32>

// CHECK-LABEL: func.func private @double(
// CHECK: linalg.generic
// CHECK: return
llm.kernel @double(%x: tensor<?x16xf32>) -> tensor<?x16xf32> attributes {anchor = "elementwise"} {
  %y = llm.glu identity %x, %x : tensor<?x16xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  llm.yield %y : tensor<?x16xf32>
}

// The second layer's pools are memrefs 2 and 3 of the cache.
// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[START:[^:]*]]: memref<?xi32>, %{{[^:]*}}: memref<?xi32>, %{{[^:]*}}: memref<?x?xi32>, %[[SLOTS:[^:]*]]: memref<?xi32>,
// CHECK-SAME: %{{[^:]*}}: memref<?x2x4x8xf32>, %{{[^:]*}}: memref<?x2x4x8xf32>, %[[K:[^:]*]]: memref<?x2x4x8xf32>, %[[V:[^:]*]]: memref<?x2x4x8xf32>,
// CHECK-SAME: %[[W:[^:]*]]: tensor<16x16xbf16> {llm.parameter = @w})
func.func @step(%x: tensor<?x16xf32>, %positions: tensor<?xi32>, %batch: !llm.batch,
                %cache: !llm.kv_cache<2 x !kv>) -> tensor<?x16xf32> {
  %w = llm.weight @w : tensor<16x16xbf16>
  // CHECK: arith.constant dense<1.000000e+00> : tensor<4xf32>
  %f = llm.weight @freq : tensor<4xf32>
  // CHECK: math.cos
  // CHECK: math.sin
  %cos, %sin = llm.rope_table %positions, %f {attention_scaling = 1.0 : f64} : tensor<?xi32>, tensor<4xf32> -> tensor<?x4xf32>
  // CHECK: %[[Y:.*]] = call @double
  %y = llm.launch @double(%x) : (tensor<?x16xf32>) -> tensor<?x16xf32>
  // The product accumulates in f32.
  // CHECK: linalg.generic
  // CHECK-SAME: ins(%[[Y]], %[[W]] : tensor<?x16xf32>, tensor<16x16xbf16>)
  // CHECK: arith.extf %{{.*}} : bf16 to f32
  // CHECK-NOT: llm.group
  %q2 = llm.group "linear" -> tensor<?x16xf32> {
    %p = llm.linear %y, %w : tensor<?x16xf32>, tensor<16x16xbf16> -> tensor<?x16xf32>
    llm.yield %p : tensor<?x16xf32>
  }
  %c0 = arith.constant 0 : index
  %t = tensor.dim %x, %c0 : tensor<?x16xf32>
  %q = tensor.expand_shape %q2 [[0], [1, 2]] output_shape [%t, 2, 8] : tensor<?x16xf32> into tensor<?x2x8xf32>
  %r = llm.rope half %q, %cos, %sin : tensor<?x2x8xf32>, tensor<?x4xf32> -> tensor<?x2x8xf32>
  %kv = llm.kv_layer %cache[1] : !llm.kv_cache<2 x !kv> -> !kv
  // CHECK: memref.load %[[SLOTS]]
  // CHECK: memref.store %{{.*}}, %[[K]]
  // CHECK: memref.store %{{.*}}, %[[V]]
  llm.kv_append %r, %q, %kv, %batch : tensor<?x2x8xf32>, tensor<?x2x8xf32>, !kv
  // A loop over the sequences.
  // CHECK: scf.for
  // CHECK: memref.load %[[START]]
  // CHECK: math.exp
  %o = llm.paged_attention %r, %kv, %batch {scale = 0.5 : f64, causal} : tensor<?x2x8xf32>, !kv -> tensor<?x2x8xf32>
  %z = tensor.collapse_shape %o [[0], [1, 2]] : tensor<?x2x8xf32> into tensor<?x16xf32>
  return %z : tensor<?x16xf32>
}
