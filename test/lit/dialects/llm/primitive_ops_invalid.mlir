// RUN: llmc-opt --split-input-file --verify-diagnostics %s

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected the result of rank 2, got 'tensor<?xf32>'}}
  %0 = llm.reduce sum %x {dims = array<i64: 1>} : tensor<?x8xf32> -> tensor<?xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected distinct dims in [0, 2), got 2}}
  %0 = llm.reduce sum %x {dims = array<i64: 2>} : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected distinct dims in [0, 2), got 1, 1}}
  %0 = llm.reduce sum %x {dims = array<i64: 1, 1>} : tensor<?x8xf32> -> tensor<?x1xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected dimension 1 of the result to be 1 (reduced), got 8}}
  %0 = llm.reduce sum %x {dims = array<i64: 1>} : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected dimension 0 of the result to be 4 (kept), got 5}}
  %0 = llm.reduce sum %x {dims = array<i64: 1>} : tensor<4x8xf32> -> tensor<5x1xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{unknown reduce_kind 'min'}}
  %0 = llm.reduce min %x {dims = array<i64: 1>} : tensor<?x8xf32> -> tensor<?x1xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{expected equal element types, got 'tensor<8xf32>' and 'tensor<4x8xbf16>'}}
  %0 = llm.broadcast %x : tensor<8xf32> -> tensor<4x8xbf16>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected a result of rank 2 or more, got 'tensor<8xf32>'}}
  %0 = llm.broadcast %x : tensor<4x8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @below {{cannot repeat dimension 1 of size 8 to 16}}
  %0 = llm.broadcast %x : tensor<4x8xf32> -> tensor<2x4x16xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{expected 1 sizes, one for each dynamic dimension that the input does not give, got 0}}
  %0 = llm.broadcast %x : tensor<8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected a permutation of 0..1, got 0, 0}}
  %0 = llm.transpose %x {permutation = array<i64: 0, 0>} : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected the result of rank 2, got 'tensor<32xf32>'}}
  %0 = llm.transpose %x {permutation = array<i64: 1, 0>} : tensor<4x8xf32> -> tensor<32xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected equal element types, got 'tensor<4x8xf32>' and 'tensor<8x4xbf16>'}}
  %0 = llm.transpose %x {permutation = array<i64: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xbf16>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected dimension 0 of the result to be 8 (permuted input), got 4}}
  %0 = llm.transpose %x {permutation = array<i64: 1, 0>} : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<8xf32>) {
  // expected-error @below {{expected operands of one rank of 2 or more, got 'tensor<8xf32>' and 'tensor<8xf32>'}}
  %0 = llm.matmul %a, %a : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<7x2xf32>) {
  // expected-error @below {{expected dimension 0 of rhs to be 8 (K of lhs), got 7}}
  %0 = llm.matmul %a, %b : tensor<4x8xf32>, tensor<7x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) {
  // expected-error @below {{expected dimension 0 of the result to be 4 (M of lhs), got 5}}
  %0 = llm.matmul %a, %b : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<5x2xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) {
  // expected-error @below {{expected dimension 1 of the result to be 2 (N of rhs), got 3}}
  %0 = llm.matmul %a, %b : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) {
  // expected-error @below {{expected the result of rank 2, got 'tensor<8xf32>'}}
  %0 = llm.matmul %a, %b : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<3x4x8xf32>, %b: tensor<2x8x2xf32>) {
  // expected-error @below {{expected dimension 0 of rhs to be 3 (batch of lhs), got 2}}
  %0 = llm.matmul %a, %b : tensor<3x4x8xf32>, tensor<2x8x2xf32> -> tensor<3x4x2xf32>
  return
}

// -----

func.func @f(%a: tensor<3x4x8xf32>, %b: tensor<3x8x2xf32>) {
  // expected-error @below {{expected dimension 0 of the result to be 3 (batch of lhs), got 2}}
  %0 = llm.matmul %a, %b : tensor<3x4x8xf32>, tensor<3x8x2xf32> -> tensor<2x4x2xf32>
  return
}
