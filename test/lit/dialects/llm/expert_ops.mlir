// RUN: llmc-opt %s | FileCheck %s
// RUN: llmc-opt --mlir-print-op-generic %s | llmc-opt | FileCheck %s

// Mixture of experts.

// CHECK-LABEL: func.func @route
func.func @route(%l: tensor<?x8xf32>, %b: tensor<8xf32>) {
  // CHECK: llm.moe_route %{{.*}} {renormalize, scale = 1.000000e+00 : f64, scoring = "softmax", top_k = 2 : i64} : tensor<?x8xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  %w0, %e0 = llm.moe_route %l {renormalize, scale = 1.000000e+00 : f64, scoring = "softmax", top_k = 2 : i64} : tensor<?x8xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  // A bias for the choice, and groups of experts (DeepSeek).
  // CHECK: llm.moe_route %{{.*}} bias(%{{.*}} : tensor<8xf32>) {groups = 4 : i64, scale = 2.500000e+00 : f64, scoring = "sigmoid", top_groups = 2 : i64, top_k = 2 : i64} : tensor<?x8xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  %w1, %e1 = llm.moe_route %l bias(%b : tensor<8xf32>) {groups = 4 : i64, scale = 2.500000e+00 : f64, scoring = "sigmoid", top_groups = 2 : i64, top_k = 2 : i64} : tensor<?x8xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// CHECK-LABEL: func.func @mlp
func.func @mlp(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %gu: tensor<8x12x4xbf16>, %d: tensor<8x4x6xbf16>, %gub: tensor<8x12xf32>, %db: tensor<8x4xf32>) {
  // CHECK: llm.moe_mlp silu split %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<8x12x4xbf16>, tensor<8x4x6xbf16> -> tensor<?x4xf32>
  %0 = llm.moe_mlp silu split %x, %w, %e, %gu, %d : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<8x12x4xbf16>, tensor<8x4x6xbf16> -> tensor<?x4xf32>
  // CHECK: llm.moe_mlp gelu_tanh interleaved %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} gate_up_bias(%{{.*}} : tensor<8x12xf32>) down_bias(%{{.*}} : tensor<8x4xf32>) : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<8x12x4xbf16>, tensor<8x4x6xbf16> -> tensor<?x4xf32>
  %1 = llm.moe_mlp gelu_tanh interleaved %x, %w, %e, %gu, %d gate_up_bias(%gub : tensor<8x12xf32>) down_bias(%db : tensor<8x4xf32>) : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<8x12x4xbf16>, tensor<8x4x6xbf16> -> tensor<?x4xf32>
  // CHECK: llm.moe_mlp silu split %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} down_bias(%{{.*}} : tensor<8x4xf32>) : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<8x12x4xbf16>, tensor<8x4x6xbf16> -> tensor<?x4xf32>
  %2 = llm.moe_mlp silu split %x, %w, %e, %gu, %d down_bias(%db : tensor<8x4xf32>) : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<8x12x4xbf16>, tensor<8x4x6xbf16> -> tensor<?x4xf32>
  return
}
