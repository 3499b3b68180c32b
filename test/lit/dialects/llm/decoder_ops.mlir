// RUN: llmc-opt %s | FileCheck %s
// RUN: llmc-opt --mlir-print-op-generic %s | llmc-opt | FileCheck %s

// The blocks of a decoder, each in its plain form and with everything optional.

// CHECK-LABEL: func.func @embedding
func.func @embedding(%ids: tensor<?xi32>, %table: tensor<16x8xbf16>) {
  // CHECK: llm.embedding %{{.*}}, %{{.*}} : tensor<?xi32>, tensor<16x8xbf16> -> tensor<?x8xf32>
  %0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<16x8xbf16> -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: func.func @linear
func.func @linear(%x: tensor<?x8xbf16>, %w: tensor<16x8xbf16>, %b: tensor<16xbf16>, %q: tensor<16x8xi8>) {
  // CHECK: llm.linear %{{.*}}, %{{.*}} : tensor<?x8xbf16>, tensor<16x8xbf16> -> tensor<?x16xf32>
  %0 = llm.linear %x, %w : tensor<?x8xbf16>, tensor<16x8xbf16> -> tensor<?x16xf32>
  // CHECK: llm.linear %{{.*}}, %{{.*}} bias(%{{.*}}) : tensor<?x8xbf16>, tensor<16x8xbf16>, tensor<16xbf16> -> tensor<?x16xf32>
  %1 = llm.linear %x, %w bias(%b) : tensor<?x8xbf16>, tensor<16x8xbf16>, tensor<16xbf16> -> tensor<?x16xf32>
  // Weights may be integers.
  // CHECK: llm.linear %{{.*}}, %{{.*}} : tensor<?x8xbf16>, tensor<16x8xi8> -> tensor<?x16xf32>
  %2 = llm.linear %x, %q : tensor<?x8xbf16>, tensor<16x8xi8> -> tensor<?x16xf32>
  return
}

// CHECK-LABEL: func.func @norms
func.func @norms(%x: tensor<?x8xf32>, %h: tensor<?x2x8xf32>, %g: tensor<8xf32>) {
  // CHECK: llm.rms_norm %{{.*}} {eps = 1.000000e+00 : f64} : tensor<?x8xf32> -> tensor<?x8xbf16>
  %0 = llm.rms_norm %x {eps = 1.000000e+00 : f64} : tensor<?x8xf32> -> tensor<?x8xbf16>
  // Of heads.
  // CHECK: llm.rms_norm %{{.*}}, %{{.*}} {eps = 1.000000e+00 : f64} : tensor<?x2x8xf32>, tensor<8xf32> -> tensor<?x2x8xf32>
  %1 = llm.rms_norm %h, %g {eps = 1.000000e+00 : f64} : tensor<?x2x8xf32>, tensor<8xf32> -> tensor<?x2x8xf32>
  // CHECK: llm.layer_norm %{{.*}} {eps = 1.000000e+00 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = llm.layer_norm %x {eps = 1.000000e+00 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: llm.layer_norm %{{.*}} gamma(%{{.*}}) {eps = 1.000000e+00 : f64} : tensor<?x8xf32>, tensor<8xf32> -> tensor<?x8xf32>
  %3 = llm.layer_norm %x gamma(%g) {eps = 1.000000e+00 : f64} : tensor<?x8xf32>, tensor<8xf32> -> tensor<?x8xf32>
  // CHECK: llm.layer_norm %{{.*}} beta(%{{.*}}) {eps = 1.000000e+00 : f64} : tensor<?x8xf32>, tensor<8xf32> -> tensor<?x8xf32>
  %4 = llm.layer_norm %x beta(%g) {eps = 1.000000e+00 : f64} : tensor<?x8xf32>, tensor<8xf32> -> tensor<?x8xf32>
  // CHECK: llm.layer_norm %{{.*}} gamma(%{{.*}}) beta(%{{.*}}) {eps = 1.000000e+00 : f64} : tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<?x8xf32>
  %5 = llm.layer_norm %x gamma(%g) beta(%g) {eps = 1.000000e+00 : f64} : tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: func.func @rope
func.func @rope(%p: tensor<?xi32>, %f: tensor<4xf32>, %q: tensor<?x2x8xf32>, %wide: tensor<?x2x16xf32>) {
  // CHECK: llm.rope_table %{{.*}}, %{{.*}} {attention_scaling = 1.000000e+00 : f64} : tensor<?xi32>, tensor<4xf32> -> tensor<?x4xf32>
  %cos, %sin = llm.rope_table %p, %f {attention_scaling = 1.000000e+00 : f64} : tensor<?xi32>, tensor<4xf32> -> tensor<?x4xf32>
  // CHECK: llm.rope half %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x2x8xf32>, tensor<?x4xf32> -> tensor<?x2x8xf32>
  %0 = llm.rope half %q, %cos, %sin : tensor<?x2x8xf32>, tensor<?x4xf32> -> tensor<?x2x8xf32>
  // Only half of each head rotates.
  // CHECK: llm.rope interleaved %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x2x16xf32>, tensor<?x4xf32> -> tensor<?x2x16xf32>
  %1 = llm.rope interleaved %wide, %cos, %sin : tensor<?x2x16xf32>, tensor<?x4xf32> -> tensor<?x2x16xf32>
  return
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<?x4x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x4xf32>, %heads: tensor<4xf32>) {
  // Two query heads a key head; values have their own size.
  // CHECK: llm.attention %{{.*}}, %{{.*}}, %{{.*}} {causal, scale = 1.000000e+00 : f64} : tensor<?x4x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x4x4xf32>
  %0 = llm.attention %q, %k, %v {causal, scale = 1.000000e+00 : f64} : tensor<?x4x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x4x4xf32>
  // CHECK: llm.attention %{{.*}}, %{{.*}}, %{{.*}} sinks(%{{.*}} : tensor<4xf32>) alibi(%{{.*}} : tensor<4xf32>) {scale = 1.000000e+00 : f64, softcap = 5.000000e+01 : f64, window = 16 : i64} : tensor<?x4x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x4x4xf32>
  %1 = llm.attention %q, %k, %v sinks(%heads : tensor<4xf32>) alibi(%heads : tensor<4xf32>) {scale = 1.000000e+00 : f64, softcap = 5.000000e+01 : f64, window = 16 : i64} : tensor<?x4x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x4x4xf32>
  // CHECK: llm.attention %{{.*}}, %{{.*}}, %{{.*}} alibi(%{{.*}} : tensor<4xf32>) {causal, scale = 1.000000e+00 : f64} : tensor<?x4x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x4x4xf32>
  %2 = llm.attention %q, %k, %v alibi(%heads : tensor<4xf32>) {causal, scale = 1.000000e+00 : f64} : tensor<?x4x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x4x4xf32>
  return
}

// CHECK-LABEL: func.func @activations
func.func @activations(%x: tensor<?x8xf32>) {
  // CHECK: llm.activation identity %{{.*}} : tensor<?x8xf32> -> tensor<?x8xf32>
  %0 = llm.activation identity %x : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: llm.activation relu %{{.*}} : tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = llm.activation relu %x : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: llm.activation relu2 %{{.*}} : tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = llm.activation relu2 %x : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: llm.activation silu %{{.*}} : tensor<?x8xf32> -> tensor<?x8xf32>
  %3 = llm.activation silu %x : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: llm.activation gelu %{{.*}} : tensor<?x8xf32> -> tensor<?x8xf32>
  %4 = llm.activation gelu %x : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: llm.activation gelu_tanh %{{.*}} : tensor<?x8xf32> -> tensor<?x8xf32>
  %5 = llm.activation gelu_tanh %x : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: llm.activation gelu_quick %{{.*}} : tensor<?x8xf32> -> tensor<?x8xf32>
  %6 = llm.activation gelu_quick %x : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: llm.activation sigmoid %{{.*}} : tensor<?x8xf32> -> tensor<?x8xf32>
  %7 = llm.activation sigmoid %x : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: llm.activation tanh %{{.*}} : tensor<?x8xf32> -> tensor<?x8xf32>
  %8 = llm.activation tanh %x : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: func.func @gated_units
func.func @gated_units(%x: tensor<?x8xf32>, %xs: tensor<?x16xf32>) {
  // CHECK: llm.glu silu %{{.*}}, %{{.*}} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %0 = llm.glu silu %x, %x : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: llm.packed_glu gelu_tanh split %{{.*}} : tensor<?x16xf32> -> tensor<?x8xbf16>
  %1 = llm.packed_glu gelu_tanh split %xs : tensor<?x16xf32> -> tensor<?x8xbf16>
  // Four columns of gate, four of up, and so on.
  // CHECK: llm.packed_glu silu interleaved %{{.*}} {block = 4 : i64} : tensor<?x16xf32> -> tensor<?x8xbf16>
  %2 = llm.packed_glu silu interleaved %xs {block = 4 : i64} : tensor<?x16xf32> -> tensor<?x8xbf16>
  return
}

// CHECK-LABEL: func.func @gather_rows
func.func @gather_rows(%x: tensor<?x8xf32>, %rows: tensor<?xi32>) {
  // CHECK: llm.gather_rows %{{.*}}, %{{.*}} : tensor<?x8xf32>, tensor<?xi32> -> tensor<?x8xf32>
  %0 = llm.gather_rows %x, %rows : tensor<?x8xf32>, tensor<?xi32> -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: func.func @sample
func.func @sample(%l: tensor<?x16xf32>, %f: tensor<?xf32>, %i: tensor<?xi32>, %s: tensor<?xi64>) {
  // CHECK: llm.sample %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<?x16xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>) -> tensor<?xi32>
  %0 = llm.sample %l, %f, %i, %f, %f, %s, %i : (tensor<?x16xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>) -> tensor<?xi32>
  return
}
