// RUN: llmc-opt --split-input-file --verify-diagnostics %s

func.func @f(%l: tensor<8xf32>) {
  // expected-error @below {{expected logits of rank 2, got 'tensor<8xf32>'}}
  %w, %e = llm.moe_route %l {top_k = 2 : i64, scoring = "softmax", scale = 1.0 : f64} : tensor<8xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}

// -----

func.func @f(%l: tensor<4x8xf32>) {
  // expected-error @below {{expected top_k in [1, 8], got 9}}
  %w, %e = llm.moe_route %l {top_k = 9 : i64, scoring = "softmax", scale = 1.0 : f64} : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}

// -----

func.func @f(%l: tensor<4x8xf32>) {
  // expected-error @below {{expected scoring "softmax" or "sigmoid", got "tanh"}}
  %w, %e = llm.moe_route %l {top_k = 2 : i64, scoring = "tanh", scale = 1.0 : f64} : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}

// -----

func.func @f(%l: tensor<4x8xf32>) {
  // expected-error @below {{expected groups and top_groups together or neither}}
  %w, %e = llm.moe_route %l {top_k = 2 : i64, scoring = "softmax", scale = 1.0 : f64, groups = 2 : i64} : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}

// -----

func.func @f(%l: tensor<4x8xf32>) {
  // expected-error @below {{expected groups that divide 8 experts and top_groups in [1, groups], got 3 and 1}}
  %w, %e = llm.moe_route %l {top_k = 2 : i64, scoring = "softmax", scale = 1.0 : f64, groups = 3 : i64, top_groups = 1 : i64} : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}

// -----

func.func @f(%l: tensor<4x8xf32>) {
  // expected-error @below {{expected groups that divide 8 experts and top_groups in [1, groups], got 2 and 3}}
  %w, %e = llm.moe_route %l {top_k = 2 : i64, scoring = "softmax", scale = 1.0 : f64, groups = 2 : i64, top_groups = 3 : i64} : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}

// -----

func.func @f(%l: tensor<4x8xf32>) {
  // expected-error @below {{expected dimension 1 of the result to be 2 (top_k), got 3}}
  %w, %e = llm.moe_route %l {top_k = 2 : i64, scoring = "softmax", scale = 1.0 : f64} : tensor<4x8xf32> -> tensor<4x3xf32>, tensor<4x2xi32>
  return
}

// -----

func.func @f(%l: tensor<4x8xf32>) {
  // expected-error @below {{expected dimension 0 of the result to be 4 (rows of the logits), got 5}}
  %w, %e = llm.moe_route %l {top_k = 2 : i64, scoring = "softmax", scale = 1.0 : f64} : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<5x2xi32>
  return
}

// -----

func.func @f(%l: tensor<4x8xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{expected dimension 0 of the bias to be 8 (experts of the logits), got 4}}
  %w, %e = llm.moe_route %l bias(%b : tensor<4xf32>) {top_k = 2 : i64, scoring = "softmax", scale = 1.0 : f64} : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x3xi32>, %gu: tensor<8x12x4xf32>, %d: tensor<8x4x6xf32>) {
  // expected-error @below {{expected weights and experts of one shape, got 'tensor<?x2xf32>' and 'tensor<?x3xi32>'}}
  %0 = llm.moe_mlp silu split %x, %w, %e, %gu, %d : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x3xi32>, tensor<8x12x4xf32>, tensor<8x4x6xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %gu: tensor<8x12x4xf32>, %d: tensor<8x4x6xf32>) {
  // expected-error @below {{expected the input and the result of one shape, got 'tensor<?x4xf32>' and 'tensor<?x5xf32>'}}
  %0 = llm.moe_mlp silu split %x, %w, %e, %gu, %d : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<8x12x4xf32>, tensor<8x4x6xf32> -> tensor<?x5xf32>
  return
}

// -----

func.func @f(%x: tensor<3x4xf32>, %w: tensor<4x2xf32>, %e: tensor<4x2xi32>, %gu: tensor<8x12x4xf32>, %d: tensor<8x4x6xf32>) {
  // expected-error @below {{expected dimension 0 of weights to be 3 (rows of the input), got 4}}
  %0 = llm.moe_mlp silu split %x, %w, %e, %gu, %d : tensor<3x4xf32>, tensor<4x2xf32>, tensor<4x2xi32>, tensor<8x12x4xf32>, tensor<8x4x6xf32> -> tensor<3x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %gu: tensor<8x12x5xf32>, %d: tensor<8x4x6xf32>) {
  // expected-error @below {{expected dimension 2 of gate_up to be 4 (columns of the input), got 5}}
  %0 = llm.moe_mlp silu split %x, %w, %e, %gu, %d : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<8x12x5xf32>, tensor<8x4x6xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %gu: tensor<8x13x4xf32>, %d: tensor<8x4x6xf32>) {
  // expected-error @below {{expected gate_up to have an even number of rows an expert, got 13}}
  %0 = llm.moe_mlp silu split %x, %w, %e, %gu, %d : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<8x13x4xf32>, tensor<8x4x6xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %gu: tensor<12x4xf32>, %d: tensor<8x4x6xf32>) {
  // expected-error @below {{expected gate_up of rank 3, got 'tensor<12x4xf32>'}}
  %0 = llm.moe_mlp silu split %x, %w, %e, %gu, %d : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<12x4xf32>, tensor<8x4x6xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %gu: tensor<8x12x4xf32>, %d: tensor<7x4x6xf32>) {
  // expected-error @below {{expected dimension 0 of down to be 8 (experts of gate_up), got 7}}
  %0 = llm.moe_mlp silu split %x, %w, %e, %gu, %d : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<8x12x4xf32>, tensor<7x4x6xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %gu: tensor<8x12x4xf32>, %d: tensor<8x5x6xf32>) {
  // expected-error @below {{expected dimension 1 of down to be 4 (columns of the input), got 5}}
  %0 = llm.moe_mlp silu split %x, %w, %e, %gu, %d : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<8x12x4xf32>, tensor<8x5x6xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %gu: tensor<8x12x4xf32>, %d: tensor<8x4x12xf32>) {
  // expected-error @below {{expected dimension 2 of down to be 6 (half of gate_up), got 12}}
  %0 = llm.moe_mlp silu split %x, %w, %e, %gu, %d : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<8x12x4xf32>, tensor<8x4x12xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %gu: tensor<8x12x4xf32>, %d: tensor<8x4x6xf32>, %b: tensor<8x6xf32>) {
  // expected-error @below {{expected dimension 1 of gate_up_bias to be 12 (rows of gate_up), got 6}}
  %0 = llm.moe_mlp silu split %x, %w, %e, %gu, %d gate_up_bias(%b : tensor<8x6xf32>) : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<8x12x4xf32>, tensor<8x4x6xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %gu: tensor<8x12x4xf32>, %d: tensor<8x4x6xf32>, %b: tensor<2x4xf32>) {
  // expected-error @below {{expected dimension 0 of down_bias to be 8 (experts of gate_up), got 2}}
  %0 = llm.moe_mlp silu split %x, %w, %e, %gu, %d down_bias(%b : tensor<2x4xf32>) : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<8x12x4xf32>, tensor<8x4x6xf32> -> tensor<?x4xf32>
  return
}
