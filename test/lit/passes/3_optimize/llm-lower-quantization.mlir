// RUN: llmc-opt %s --llm-lower-quantization | FileCheck %s

// Codes are called as the weight was, unless something else still reads that one.
// CHECK-DAG: llm.parameter @q.weight : tensor<16x8xf8E4M3FN> from #llm.codes<#llm.concat<[#llm.source<"q">, #llm.source<"k">], dim = 0>, to = f8E4M3FN, group = 0>
// CHECK-DAG: llm.parameter @q.weight_scale : tensor<16x1xf32> from #llm.scales<#llm.concat<[#llm.source<"q">, #llm.source<"k">], dim = 0>, to = f8E4M3FN, group = 0>
// CHECK-DAG: llm.parameter @tied : tensor<16x8xbf16> from #llm.source<"tied">
// CHECK-DAG: llm.parameter @tied.quantized : tensor<16x8xi4> from #llm.codes<#llm.source<"tied">, to = i4, group = 4>
// CHECK-DAG: llm.parameter @tied.quantized_scale : tensor<16x2xf32> from #llm.scales<#llm.source<"tied">, to = i4, group = 4>
llm.parameter @q.weight : tensor<16x8xbf16> from #llm.concat<[#llm.source<"q">, #llm.source<"k">], dim = 0>
llm.parameter @tied : tensor<16x8xbf16> from #llm.source<"tied">
llm.parameter @bias : tensor<16xbf16> from #llm.source<"bias">

// CHECK-LABEL: func.func @step
func.func @step(%ids: tensor<?xi32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  // CHECK: %[[X:.*]] = llm.embedding
  %t = llm.weight @tied : tensor<16x8xbf16>
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<16x8xbf16> -> tensor<?x8xf32>
  %w = llm.weight @q.weight : tensor<16x8xbf16>
  %b = llm.weight @bias : tensor<16xbf16>
  // CHECK: %[[W:.*]] = llm.weight @q.weight : tensor<16x8xf8E4M3FN>
  // CHECK: %[[WS:.*]] = llm.weight @q.weight_scale : tensor<16x1xf32>
  // CHECK: %[[XS:.*]] = llm.dynamic_scale %[[X]] {group = 0 : i64, limit = 4.480000e+02 : f64} : tensor<?x8xf32> -> tensor<?x1xf32>
  // CHECK: %[[C:.*]] = llm.quantize %[[X]], %[[XS]] : tensor<?x8xf32>, tensor<?x1xf32> -> tensor<?x8xf8E4M3FN>
  // CHECK: llm.scaled_linear %[[C]], %[[W]] weight_scale(%[[WS]] : tensor<16x1xf32>) input_scale(%[[XS]] : tensor<?x1xf32>) bias(%{{.*}} : tensor<16xbf16>)
  %y = llm.linear %x, %w bias(%b) {llm.quantization = #llm.quantization<weight = f8E4M3FN, group = 0, input = f8E4M3FN>} : tensor<?x8xf32>, tensor<16x8xbf16>, tensor<16xbf16> -> tensor<?x16xf32>
  // CHECK: llm.scaled_linear %[[X]], %{{.*}} weight_scale(%{{.*}} : tensor<16x2xf32>) : tensor<?x8xf32>, tensor<16x8xi4> -> tensor<?x16xf32>
  %z = llm.linear %x, %t {llm.quantization = #llm.quantization<weight = i4, group = 4>} : tensor<?x8xf32>, tensor<16x8xbf16> -> tensor<?x16xf32>
  return %y, %z : tensor<?x16xf32>, tensor<?x16xf32>
}

// Zero points are a third parameter beside codes and scales.
// CHECK-LABEL: func.func @zeros
func.func @zeros(%x: tensor<?x8xf32>) -> tensor<?x16xf32> {
  // CHECK: %[[Z:.*]] = llm.weight @up_zero : tensor<16x2xi8>
  // CHECK: llm.scaled_linear %{{.*}}, %{{.*}} weight_scale(%{{.*}} : tensor<16x2xf32>) weight_zero(%[[Z]] : tensor<16x2xi8>) : tensor<?x8xf32>, tensor<16x8xi4> -> tensor<?x16xf32>
  %w = llm.weight @up : tensor<16x8xbf16>
  %y = llm.linear %x, %w {llm.quantization = #llm.quantization<weight = i4, group = 4, zeros = true>} : tensor<?x8xf32>, tensor<16x8xbf16> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
// CHECK-DAG: llm.parameter @up : tensor<16x8xi4> from #llm.codes<#llm.source<"up">, to = i4, group = 4, zeros = true>
// CHECK-DAG: llm.parameter @up_scale : tensor<16x2xf32> from #llm.scales<#llm.source<"up">, to = i4, group = 4, zeros = true>
// CHECK-DAG: llm.parameter @up_zero : tensor<16x2xi8> from #llm.zeros<#llm.source<"up">, to = i4, group = 4>
llm.parameter @up : tensor<16x8xbf16> from #llm.source<"up">
