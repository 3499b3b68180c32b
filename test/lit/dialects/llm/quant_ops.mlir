// RUN: llmc-opt %s | FileCheck %s
// RUN: llmc-opt --mlir-print-op-generic %s | llmc-opt | FileCheck %s

// Scaled and packed operands.

// CHECK-LABEL: func.func @quantize
func.func @quantize(%x: tensor<?x8xbf16>, %s: tensor<f32>, %t: tensor<?x1xf32>, %g: tensor<?x2xf32>) {
  // One scale for the tensor, for each token, for each group of columns.
  // CHECK: llm.quantize %{{.*}}, %{{.*}} : tensor<?x8xbf16>, tensor<f32> -> tensor<?x8xf8E4M3FN>
  %0 = llm.quantize %x, %s : tensor<?x8xbf16>, tensor<f32> -> tensor<?x8xf8E4M3FN>
  // CHECK: llm.quantize %{{.*}}, %{{.*}} : tensor<?x8xbf16>, tensor<?x1xf32> -> tensor<?x8xi8>
  %1 = llm.quantize %x, %t : tensor<?x8xbf16>, tensor<?x1xf32> -> tensor<?x8xi8>
  // CHECK: llm.quantize %{{.*}}, %{{.*}} : tensor<?x8xbf16>, tensor<?x2xf32> -> tensor<?x8xf8E5M2>
  %2 = llm.quantize %x, %g : tensor<?x8xbf16>, tensor<?x2xf32> -> tensor<?x8xf8E5M2>
  return
}

// CHECK-LABEL: func.func @dynamic_scale
func.func @dynamic_scale(%x: tensor<?x8xbf16>) {
  // CHECK: llm.dynamic_scale %{{.*}} {group = 0 : i64, limit = 4.480000e+02 : f64} : tensor<?x8xbf16> -> tensor<?x1xf32>
  %0 = llm.dynamic_scale %x {group = 0 : i64, limit = 4.480000e+02 : f64} : tensor<?x8xbf16> -> tensor<?x1xf32>
  // CHECK: llm.dynamic_scale %{{.*}} {group = 4 : i64, limit = 4.480000e+02 : f64} : tensor<?x8xbf16> -> tensor<?x2xf32>
  %1 = llm.dynamic_scale %x {group = 4 : i64, limit = 4.480000e+02 : f64} : tensor<?x8xbf16> -> tensor<?x2xf32>
  return
}

// CHECK-LABEL: func.func @scaled_linear
func.func @scaled_linear(%x: tensor<?x8xf8E4M3FN>, %w: tensor<16x8xf8E4M3FN>, %s: tensor<f32>, %row: tensor<16x1xf32>, %block: tensor<4x2xf32>, %b: tensor<16xf32>, %y: tensor<?x8xbf16>, %w4: tensor<16x8xi4>, %g: tensor<16x2xf32>, %z: tensor<16x2xi4>) {
  // CHECK: llm.scaled_linear %{{.*}}, %{{.*}} weight_scale(%{{.*}} : tensor<f32>) input_scale(%{{.*}} : tensor<f32>) : tensor<?x8xf8E4M3FN>, tensor<16x8xf8E4M3FN> -> tensor<?x16xf32>
  %0 = llm.scaled_linear %x, %w weight_scale(%s : tensor<f32>) input_scale(%s : tensor<f32>) : tensor<?x8xf8E4M3FN>, tensor<16x8xf8E4M3FN> -> tensor<?x16xf32>
  // CHECK: llm.scaled_linear %{{.*}}, %{{.*}} weight_scale(%{{.*}} : tensor<16x1xf32>) input_scale(%{{.*}} : tensor<f32>) bias(%{{.*}} : tensor<16xf32>) : tensor<?x8xf8E4M3FN>, tensor<16x8xf8E4M3FN> -> tensor<?x16xf32>
  %1 = llm.scaled_linear %x, %w weight_scale(%row : tensor<16x1xf32>) input_scale(%s : tensor<f32>) bias(%b : tensor<16xf32>) : tensor<?x8xf8E4M3FN>, tensor<16x8xf8E4M3FN> -> tensor<?x16xf32>
  // CHECK: llm.scaled_linear %{{.*}}, %{{.*}} weight_scale(%{{.*}} : tensor<4x2xf32>) : tensor<?x8xf8E4M3FN>, tensor<16x8xf8E4M3FN> -> tensor<?x16xf32>
  %2 = llm.scaled_linear %x, %w weight_scale(%block : tensor<4x2xf32>) : tensor<?x8xf8E4M3FN>, tensor<16x8xf8E4M3FN> -> tensor<?x16xf32>
  // Weights alone are quantized, in groups with zero points.
  // CHECK: llm.scaled_linear %{{.*}}, %{{.*}} weight_scale(%{{.*}} : tensor<16x2xf32>) weight_zero(%{{.*}} : tensor<16x2xi4>) : tensor<?x8xbf16>, tensor<16x8xi4> -> tensor<?x16xf32>
  %3 = llm.scaled_linear %y, %w4 weight_scale(%g : tensor<16x2xf32>) weight_zero(%z : tensor<16x2xi4>) : tensor<?x8xbf16>, tensor<16x8xi4> -> tensor<?x16xf32>
  return
}
