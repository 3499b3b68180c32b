// RUN: llmc-opt %s --split-input-file --llm-raise-rope --canonicalize | FileCheck %s

// Llama: halves, heads in front of tokens, tables concatenated with themselves. The
// transposes around the rotation are part of it.
// CHECK-LABEL: func @rotate_half
// CHECK-SAME: %[[P:.*]]: tensor<?xi32>, %[[Q:.*]]: tensor<?x4x16xf32>, %[[F:.*]]: tensor<8xf32>
// CHECK-NEXT: %[[COS:.*]], %[[SIN:.*]] = llm.rope_table %[[P]], %[[F]] {attention_scaling = 1.000000e+00 : f64}
// CHECK-NEXT: %[[Y:.*]] = llm.rope half %[[Q]], %[[COS]], %[[SIN]] : tensor<?x4x16xf32>
// CHECK-NEXT: return %[[Y]]
func.func @rotate_half(%positions: tensor<?xi32>, %q: tensor<?x4x16xf32>, %inv_freq: tensor<8xf32>, %t: index) -> tensor<?x4x16xf32> {
  %p = tensor.expand_shape %positions [[0, 1]] output_shape [%t, 1] : tensor<?xi32> into tensor<?x1xi32>
  %pf = arith.sitofp %p : tensor<?x1xi32> to tensor<?x1xf32>
  %pb = llm.broadcast %pf : tensor<?x1xf32> -> tensor<?x8xf32>
  %fb = llm.broadcast %inv_freq sizes(%t) : tensor<8xf32> -> tensor<?x8xf32>
  %f = arith.mulf %pb, %fb : tensor<?x8xf32>
  %ff = tensor.concat dim(1) %f, %f : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x16xf32>
  %c = math.cos %ff : tensor<?x16xf32>
  %s = math.sin %ff : tensor<?x16xf32>
  %c1 = tensor.expand_shape %c [[0, 1], [2]] output_shape [1, %t, 16] : tensor<?x16xf32> into tensor<1x?x16xf32>
  %s1 = tensor.expand_shape %s [[0, 1], [2]] output_shape [1, %t, 16] : tensor<?x16xf32> into tensor<1x?x16xf32>
  %cb = llm.broadcast %c1 : tensor<1x?x16xf32> -> tensor<4x?x16xf32>
  %sb = llm.broadcast %s1 : tensor<1x?x16xf32> -> tensor<4x?x16xf32>
  %x = llm.transpose %q {permutation = array<i64: 1, 0, 2>} : tensor<?x4x16xf32> -> tensor<4x?x16xf32>
  %xc = arith.mulf %x, %cb : tensor<4x?x16xf32>
  %lo = tensor.extract_slice %x[0, 0, 0] [4, %t, 8] [1, 1, 1] : tensor<4x?x16xf32> to tensor<4x?x8xf32>
  %hi = tensor.extract_slice %x[0, 0, 8] [4, %t, 8] [1, 1, 1] : tensor<4x?x16xf32> to tensor<4x?x8xf32>
  %n = arith.negf %hi : tensor<4x?x8xf32>
  %r = tensor.concat dim(2) %n, %lo : (tensor<4x?x8xf32>, tensor<4x?x8xf32>) -> tensor<4x?x16xf32>
  %rs = arith.mulf %r, %sb : tensor<4x?x16xf32>
  %y = arith.addf %xc, %rs : tensor<4x?x16xf32>
  %yt = llm.transpose %y {permutation = array<i64: 1, 0, 2>} : tensor<4x?x16xf32> -> tensor<?x4x16xf32>
  return %yt : tensor<?x4x16xf32>
}

// -----

// GPT-J: pairs (2i, 2i + 1), taken by strided slices, stacked and flattened; only the
// first four elements of each head rotate; tables are repeated and scaled (yarn).
// CHECK-LABEL: func @interleaved_partial
// CHECK-SAME: %[[P:.*]]: tensor<?xi32>, %[[X:.*]]: tensor<?x2x8xf32>, %[[F:.*]]: tensor<2xf32>
// CHECK-NEXT: %[[COS:.*]], %[[SIN:.*]] = llm.rope_table %[[P]], %[[F]] {attention_scaling = 1.500000e+00 : f64}
// CHECK-NEXT: %[[Y:.*]] = llm.rope interleaved %[[X]], %[[COS]], %[[SIN]] : tensor<?x2x8xf32>, tensor<?x2xf32>
// CHECK-NEXT: return %[[Y]]
func.func @interleaved_partial(%positions: tensor<?xi32>, %x: tensor<?x2x8xf32>, %inv_freq: tensor<2xf32>, %t: index) -> tensor<?x2x8xf32> {
  %p = tensor.expand_shape %positions [[0, 1]] output_shape [%t, 1] : tensor<?xi32> into tensor<?x1xi32>
  %pf = arith.sitofp %p : tensor<?x1xi32> to tensor<?x1xf32>
  %fr = tensor.expand_shape %inv_freq [[0, 1]] output_shape [1, 2] : tensor<2xf32> into tensor<1x2xf32>
  %f = llm.matmul %pf, %fr : tensor<?x1xf32>, tensor<1x2xf32> -> tensor<?x2xf32>
  %f3 = tensor.expand_shape %f [[0], [1, 2]] output_shape [%t, 2, 1] : tensor<?x2xf32> into tensor<?x2x1xf32>
  %fb = llm.broadcast %f3 : tensor<?x2x1xf32> -> tensor<?x2x2xf32>
  %ff = tensor.collapse_shape %fb [[0], [1, 2]] : tensor<?x2x2xf32> into tensor<?x4xf32>
  %scale = arith.constant dense<1.5> : tensor<f32>
  %sc = llm.broadcast %scale sizes(%t) : tensor<f32> -> tensor<?x4xf32>
  %cos = math.cos %ff : tensor<?x4xf32>
  %sin = math.sin %ff : tensor<?x4xf32>
  %c = arith.mulf %cos, %sc : tensor<?x4xf32>
  %s = arith.mulf %sin, %sc : tensor<?x4xf32>
  %c1 = tensor.expand_shape %c [[0], [1, 2]] output_shape [%t, 1, 4] : tensor<?x4xf32> into tensor<?x1x4xf32>
  %s1 = tensor.expand_shape %s [[0], [1, 2]] output_shape [%t, 1, 4] : tensor<?x4xf32> into tensor<?x1x4xf32>
  %cb = llm.broadcast %c1 : tensor<?x1x4xf32> -> tensor<?x2x4xf32>
  %sb = llm.broadcast %s1 : tensor<?x1x4xf32> -> tensor<?x2x4xf32>
  %rot = tensor.extract_slice %x[0, 0, 0] [%t, 2, 4] [1, 1, 1] : tensor<?x2x8xf32> to tensor<?x2x4xf32>
  %pass = tensor.extract_slice %x[0, 0, 4] [%t, 2, 4] [1, 1, 1] : tensor<?x2x8xf32> to tensor<?x2x4xf32>
  %even = tensor.extract_slice %rot[0, 0, 0] [%t, 2, 2] [1, 1, 2] : tensor<?x2x4xf32> to tensor<?x2x2xf32>
  %odd = tensor.extract_slice %rot[0, 0, 1] [%t, 2, 2] [1, 1, 2] : tensor<?x2x4xf32> to tensor<?x2x2xf32>
  %n = arith.negf %odd : tensor<?x2x2xf32>
  %n1 = tensor.expand_shape %n [[0], [1], [2, 3]] output_shape [%t, 2, 2, 1] : tensor<?x2x2xf32> into tensor<?x2x2x1xf32>
  %e1 = tensor.expand_shape %even [[0], [1], [2, 3]] output_shape [%t, 2, 2, 1] : tensor<?x2x2xf32> into tensor<?x2x2x1xf32>
  %stack = tensor.concat dim(3) %n1, %e1 : (tensor<?x2x2x1xf32>, tensor<?x2x2x1xf32>) -> tensor<?x2x2x2xf32>
  %flat = tensor.collapse_shape %stack [[0], [1], [2, 3]] : tensor<?x2x2x2xf32> into tensor<?x2x4xf32>
  %rc = arith.mulf %rot, %cb : tensor<?x2x4xf32>
  %rs = arith.mulf %flat, %sb : tensor<?x2x4xf32>
  %r = arith.addf %rc, %rs : tensor<?x2x4xf32>
  %y = tensor.concat dim(2) %r, %pass : (tensor<?x2x4xf32>, tensor<?x2x4xf32>) -> tensor<?x2x8xf32>
  return %y : tensor<?x2x8xf32>
}

// -----

// Halves handled apart (gpt_oss), queries as a part of packed heads (GPT-NeoX), and
// one head without a head dimension; queries and keys share the table.
// CHECK-LABEL: func @halves_apart
// CHECK-SAME: %[[P:.*]]: tensor<?xi32>, %[[QK:.*]]: tensor<?x2x8xf32>, %[[K:.*]]: tensor<?x4xf32>, %[[F:.*]]: tensor<2xf32>
// CHECK: %[[COS:.*]], %[[SIN:.*]] = llm.rope_table
// CHECK-NOT: llm.rope_table
// CHECK: %[[Q:.*]] = tensor.extract_slice %[[QK]][0, 0, 4] [%{{.*}}, 2, 4] [1, 1, 1]
// CHECK: llm.rope half %[[Q]], %[[COS]], %[[SIN]]
// CHECK: %[[K3:.*]] = tensor.expand_shape %[[K]] {{\[\[}}0], [1, 2]] output_shape [%{{.*}}, 1, 4]
// CHECK: %[[Y:.*]] = llm.rope half %[[K3]], %[[COS]], %[[SIN]]
// CHECK: tensor.collapse_shape %[[Y]] {{\[\[}}0], [1, 2]]
func.func @halves_apart(%positions: tensor<?xi32>, %qk: tensor<?x2x8xf32>, %k: tensor<?x4xf32>, %inv_freq: tensor<2xf32>, %t: index) -> (tensor<?x2x4xf32>, tensor<?x4xf32>) {
  %pf = arith.sitofp %positions : tensor<?xi32> to tensor<?xf32>
  %p = tensor.expand_shape %pf [[0, 1]] output_shape [%t, 1] : tensor<?xf32> into tensor<?x1xf32>
  %pb = llm.broadcast %p : tensor<?x1xf32> -> tensor<?x2xf32>
  %fb = llm.broadcast %inv_freq sizes(%t) : tensor<2xf32> -> tensor<?x2xf32>
  %f = arith.mulf %fb, %pb : tensor<?x2xf32>
  %c = math.cos %f : tensor<?x2xf32>
  %s = math.sin %f : tensor<?x2xf32>
  %c1 = tensor.expand_shape %c [[0], [1, 2]] output_shape [%t, 1, 2] : tensor<?x2xf32> into tensor<?x1x2xf32>
  %s1 = tensor.expand_shape %s [[0], [1, 2]] output_shape [%t, 1, 2] : tensor<?x2xf32> into tensor<?x1x2xf32>
  %cb = llm.broadcast %c1 : tensor<?x1x2xf32> -> tensor<?x2x2xf32>
  %sb = llm.broadcast %s1 : tensor<?x1x2xf32> -> tensor<?x2x2xf32>
  %q1 = tensor.extract_slice %qk[0, 0, 4] [%t, 2, 2] [1, 1, 1] : tensor<?x2x8xf32> to tensor<?x2x2xf32>
  %q2 = tensor.extract_slice %qk[0, 0, 6] [%t, 2, 2] [1, 1, 1] : tensor<?x2x8xf32> to tensor<?x2x2xf32>
  %a = arith.mulf %q1, %cb : tensor<?x2x2xf32>
  %b = arith.mulf %q2, %sb : tensor<?x2x2xf32>
  %first = arith.subf %a, %b : tensor<?x2x2xf32>
  %d = arith.mulf %q2, %cb : tensor<?x2x2xf32>
  %e = arith.mulf %q1, %sb : tensor<?x2x2xf32>
  %second = arith.addf %d, %e : tensor<?x2x2xf32>
  %y = tensor.concat dim(2) %first, %second : (tensor<?x2x2xf32>, tensor<?x2x2xf32>) -> tensor<?x2x4xf32>
  %k1 = tensor.extract_slice %k[0, 0] [%t, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
  %k2 = tensor.extract_slice %k[0, 2] [%t, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
  %ka = arith.mulf %k1, %c : tensor<?x2xf32>
  %kb = arith.mulf %k2, %s : tensor<?x2xf32>
  %kfirst = arith.subf %ka, %kb : tensor<?x2xf32>
  %kd = arith.mulf %k2, %c : tensor<?x2xf32>
  %ke = arith.mulf %k1, %s : tensor<?x2xf32>
  %ksecond = arith.addf %ke, %kd : tensor<?x2xf32>
  %ky = tensor.concat dim(1) %kfirst, %ksecond : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x4xf32>
  return %y, %ky : tensor<?x2x4xf32>, tensor<?x4xf32>
}
