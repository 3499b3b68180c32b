// A linear's weight is stored in panels, and an embedding that shares it knows.
// RUN: llmc-opt %s --host-choose-layouts | FileCheck %s
// RUN: llmc-opt %s --host-choose-layouts=rows=16 | FileCheck %s --check-prefix=ROWS16

// CHECK: llm.parameter @tied : {{.*}} layout #llm.panels<rows = 32, group = 1>
// ROWS16: llm.parameter @tied : {{.*}} layout #llm.panels<rows = 16, group = 1>
llm.parameter @tied : tensor<75x64xbf16> from #llm.source<"tied">
// CHECK: llm.parameter @norm : tensor<64xf32> from #llm.source<"norm">{{$}}
llm.parameter @norm : tensor<64xf32> from #llm.source<"norm">
// The bilinear kernel cannot use panels: its input is computed in the kernel.
// CHECK: llm.parameter @other : tensor<64x64xbf16> from #llm.source<"other">{{$}}
llm.parameter @other : tensor<64x64xbf16> from #llm.source<"other">

// CHECK: llm.kernel @embed(%{{.*}}: tensor<?xi32>, %{{.*}}: tensor<75x64xbf16> {llm.layout = #llm.panels<rows = 32, group = 1>})
llm.kernel @embed(%ids: tensor<?xi32>, %w: tensor<75x64xbf16>) -> tensor<?x64xf32> attributes {anchor = "embedding"} {
  %h = llm.embedding %ids, %w : tensor<?xi32>, tensor<75x64xbf16> -> tensor<?x64xf32>
  llm.yield %h : tensor<?x64xf32>
}
// CHECK: llm.kernel @square({{.*}}%{{.*}}: tensor<64x64xbf16>)
llm.kernel @square(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<64x64xbf16>) -> tensor<?x64xf32> attributes {anchor = "linear"} {
  %n = llm.rms_norm %x, %g {eps = 1.0e-5 : f64} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  %y = llm.linear %n, %w : tensor<?x64xf32>, tensor<64x64xbf16> -> tensor<?x64xf32>
  llm.yield %y : tensor<?x64xf32>
}
// CHECK: llm.kernel @head(%{{.*}}: tensor<?x64xf32>, %{{.*}}: tensor<75x64xbf16> {llm.layout = #llm.panels<rows = 32, group = 1>})
llm.kernel @head(%x: tensor<?x64xf32>, %w: tensor<75x64xbf16>) -> tensor<?x75xf32> attributes {anchor = "linear"} {
  %y = llm.linear %x, %w : tensor<?x64xf32>, tensor<75x64xbf16> -> tensor<?x75xf32>
  llm.yield %y : tensor<?x75xf32>
}

func.func @step(%tokens: tensor<?xi32>) -> tensor<?x75xf32> {
  %w = llm.weight @tied : tensor<75x64xbf16>
  %g = llm.weight @norm : tensor<64xf32>
  %o = llm.weight @other : tensor<64x64xbf16>
  %h = llm.launch @embed(%tokens, %w) : (tensor<?xi32>, tensor<75x64xbf16>) -> tensor<?x64xf32>
  %s = llm.launch @square(%h, %g, %o) : (tensor<?x64xf32>, tensor<64xf32>, tensor<64x64xbf16>) -> tensor<?x64xf32>
  %y = llm.launch @head(%s, %w) : (tensor<?x64xf32>, tensor<75x64xbf16>) -> tensor<?x75xf32>
  return %y : tensor<?x75xf32>
}
