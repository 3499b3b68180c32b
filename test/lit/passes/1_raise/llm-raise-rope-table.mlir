// RUN: llmc-opt %s --llm-raise-rope-table | FileCheck %s

// CHECK-NOT: llm.parameter @sin_first :
// CHECK: llm.parameter @sin_first.inv_freq : tensor<2xf32> = dense<[1.000000e+00, 2.500000e-01]>
// CHECK: llm.parameter @cos_first.inv_freq : tensor<2xf32> = dense<[1.000000e+00, 2.500000e-01]>
// CHECK: llm.parameter @wrong : tensor<4x4xf32>
llm.parameter @sin_first : tensor<4x4xf32> = dense<"0x00000000000000000000803F0000803FA46A573F77577D3E40510A3FA50A783FB7C7683F4477F53E3311D5BE40A9603FC381103EE17F2E3F26707DBFF64F3B3F"> : tensor<4x4xf32>
llm.parameter @cos_first : tensor<4x4xf32> = dense<"0x0000803F0000803F000000000000000040510A3FA50A783FA46A573F77577D3E3311D5BE40A9603FB7C7683F4477F53E26707DBFF64F3B3FC381103EE17F2E3F"> : tensor<4x4xf32>
llm.parameter @wrong : tensor<4x4xf32> = dense<"0x00000000000000000000803F0000803FA46A573F77577D3E40510A3FA50A783FB7C7683F4477F53E3311D5BE40A9603FC381103E3D0F313F26707DBFF64F3B3F"> : tensor<4x4xf32>
llm.parameter @whole : tensor<4x4xf32> = dense<"0x00000000000000000000803F0000803FA46A573F77577D3E40510A3FA50A783FB7C7683F4477F53E3311D5BE40A9603FC381103EE17F2E3F26707DBFF64F3B3F"> : tensor<4x4xf32>

// GPT-J stores sines before cosines.
// CHECK-LABEL: func.func @gather
// CHECK: %[[F:.*]] = llm.weight @sin_first.inv_freq : tensor<2xf32>
// CHECK: %[[A:.*]] = arith.mulf
// CHECK-DAG: %[[S:.*]] = math.sin %[[A]]
// CHECK-DAG: %[[C:.*]] = math.cos %[[A]]
// CHECK: return %[[S]], %[[C]]
func.func @gather(%positions: tensor<?xi32>, %t: index) -> (tensor<?x2xf32>, tensor<?x2xf32>) {
  %w = llm.weight @sin_first : tensor<4x4xf32>
  %r = llm.embedding %positions, %w : tensor<?xi32>, tensor<4x4xf32> -> tensor<?x4xf32>
  %a = tensor.extract_slice %r[0, 0] [%t, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
  %b = tensor.extract_slice %r[0, 2] [%t, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
  return %a, %b : tensor<?x2xf32>, tensor<?x2xf32>
}

// The other order.
// CHECK-LABEL: func.func @other_order
// CHECK-DAG: %[[S:.*]] = math.sin
// CHECK-DAG: %[[C:.*]] = math.cos
// CHECK: return %[[C]], %[[S]]
func.func @other_order(%positions: tensor<?xi32>, %t: index) -> (tensor<?x2xf32>, tensor<?x2xf32>) {
  %w = llm.weight @cos_first : tensor<4x4xf32>
  %r = llm.embedding %positions, %w : tensor<?xi32>, tensor<4x4xf32> -> tensor<?x4xf32>
  %a = tensor.extract_slice %r[0, 0] [%t, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
  %b = tensor.extract_slice %r[0, 2] [%t, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
  return %a, %b : tensor<?x2xf32>, tensor<?x2xf32>
}

// One element is off by a hundredth: no table of sines and cosines.
// CHECK-LABEL: func.func @other_values
// CHECK: llm.embedding
// CHECK-NOT: math.sin
func.func @other_values(%positions: tensor<?xi32>, %t: index) -> (tensor<?x2xf32>, tensor<?x2xf32>) {
  %w = llm.weight @wrong : tensor<4x4xf32>
  %r = llm.embedding %positions, %w : tensor<?xi32>, tensor<4x4xf32> -> tensor<?x4xf32>
  %a = tensor.extract_slice %r[0, 0] [%t, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
  %b = tensor.extract_slice %r[0, 2] [%t, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
  return %a, %b : tensor<?x2xf32>, tensor<?x2xf32>
}

// Rows that are added whole are position embeddings, not rotations.
// CHECK-LABEL: func.func @added
// CHECK: llm.embedding
// CHECK-NOT: math.sin
func.func @added(%positions: tensor<?xi32>, %h: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %w = llm.weight @whole : tensor<4x4xf32>
  %r = llm.embedding %positions, %w : tensor<?xi32>, tensor<4x4xf32> -> tensor<?x4xf32>
  %y = arith.addf %h, %r : tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
