// RUN: llmc-opt %s | FileCheck %s
// RUN: llmc-opt --mlir-print-op-generic %s | llmc-opt | FileCheck %s

// Weights, kernels and launches.

// CHECK: llm.parameter @plain : tensor<8x4xbf16> from #llm.source<"w">
llm.parameter @plain : tensor<8x4xbf16> from #llm.source<"w">
// CHECK: llm.parameter @packed : tensor<8x4xbf16> from #llm.source<"w"> layout #llm.panels<rows = 4, group = 2>
llm.parameter @packed : tensor<8x4xbf16> from #llm.source<"w"> layout #llm.panels<rows = 4, group = 2>
// CHECK: llm.parameter @constant : tensor<2xf32> = dense<[1.000000e+00, 5.000000e-01]> : tensor<2xf32>
llm.parameter @constant : tensor<2xf32> = dense<[1.0, 0.5]> : tensor<2xf32>

// CHECK: llm.kernel @norm_0(%[[X:.*]]: tensor<?x4xf32>) -> tensor<?x4xf32> attributes {anchor = "norm", workspace = 64 : i64} {
llm.kernel @norm_0(%x: tensor<?x4xf32>) -> tensor<?x4xf32> attributes {anchor = "norm", workspace = 64 : i64} {
  // CHECK: %[[Y:.*]] = llm.rms_norm %[[X]]
  %y = llm.rms_norm %x {eps = 1.0 : f64} : tensor<?x4xf32> -> tensor<?x4xf32>
  // CHECK: llm.yield %[[Y]] : tensor<?x4xf32>
  llm.yield %y : tensor<?x4xf32>
}

// A kernel that only has effects.
// CHECK: llm.kernel @nothing() attributes {anchor = "elementwise"} {
llm.kernel @nothing() attributes {anchor = "elementwise"} {
  // CHECK-NEXT: llm.yield
  // CHECK-NEXT: }
  llm.yield
}

// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // CHECK: llm.weight @plain : tensor<8x4xbf16>
  %w = llm.weight @plain : tensor<8x4xbf16>
  // CHECK: %[[GROUP:.*]] = llm.group "linear" -> tensor<?x8xf32> {
  %y = llm.group "linear" -> tensor<?x8xf32> {
    %0 = llm.linear %x, %w : tensor<?x4xf32>, tensor<8x4xbf16> -> tensor<?x8xf32>
    // CHECK: llm.yield %{{.*}} : tensor<?x8xf32>
    llm.yield %0 : tensor<?x8xf32>
  }
  // A group without results needs no terminator.
  // CHECK: llm.group "elementwise" {
  llm.group "elementwise" {
  }
  // CHECK: llm.launch @nothing() : () -> ()
  llm.launch @nothing() : () -> ()
  // CHECK: %[[A:.*]] = llm.launch @norm_0(%{{.*}}) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %a = llm.launch @norm_0(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: llm.launch @norm_0(%[[A]]) {offsets = array<i64: 256>, tied = array<i64: 0, 0>, workspace_offset = 512 : i64}
  %b = llm.launch @norm_0(%a) {offsets = array<i64: 256>, tied = array<i64: 0, 0>, workspace_offset = 512 : i64} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %b : tensor<?x4xf32>
}
