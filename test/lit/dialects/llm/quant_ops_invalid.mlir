// RUN: llmc-opt --split-input-file --verify-diagnostics %s

func.func @f(%x: tensor<4x8xf32>, %s: tensor<f32>) {
  // expected-error @below {{expected the input and the result of one shape, got 'tensor<4x8xf32>' and 'tensor<4x9xi8>'}}
  %0 = llm.quantize %x, %s : tensor<4x8xf32>, tensor<f32> -> tensor<4x9xi8>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %s: tensor<8xf32>) {
  // expected-error @below {{expected scale to be a scalar or of rank 2, got 'tensor<8xf32>'}}
  %0 = llm.quantize %x, %s : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xi8>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %s: tensor<4x3xf32>) {
  // expected-error @below {{expected dimension 1 of scale to divide 8, got 3}}
  %0 = llm.quantize %x, %s : tensor<4x8xf32>, tensor<4x3xf32> -> tensor<4x8xi8>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected group 0 (the whole row) or a divisor of 8, got 3}}
  %0 = llm.dynamic_scale %x {group = 3 : i64, limit = 1.0 : f64} : tensor<4x8xf32> -> tensor<4x1xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected a positive limit, got 0.000000e+00}}
  %0 = llm.dynamic_scale %x {group = 0 : i64, limit = 0.0 : f64} : tensor<4x8xf32> -> tensor<4x1xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected dimension 1 of the result to be 2 (one scale a group), got 1}}
  %0 = llm.dynamic_scale %x {group = 4 : i64, limit = 1.0 : f64} : tensor<4x8xf32> -> tensor<4x1xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected dimension 0 of the result to be 4 (rows of the input), got 5}}
  %0 = llm.dynamic_scale %x {group = 0 : i64, limit = 1.0 : f64} : tensor<4x8xf32> -> tensor<5x1xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{expected the input of rank 2, got 'tensor<8xf32>'}}
  %0 = llm.dynamic_scale %x {group = 0 : i64, limit = 1.0 : f64} : tensor<8xf32> -> tensor<1x1xf32>
  return
}

// -----

func.func @f(%x: tensor<4x7xi8>, %w: tensor<16x8xi8>, %s: tensor<f32>) {
  // expected-error @below {{expected dimension 1 of the input to be 8 (in features of the weight), got 7}}
  %0 = llm.scaled_linear %x, %w weight_scale(%s : tensor<f32>) : tensor<4x7xi8>, tensor<16x8xi8> -> tensor<4x16xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xi8>, %w: tensor<16x8xi8>, %s: tensor<f32>) {
  // expected-error @below {{expected dimension 1 of the result to be 16 (out features of the weight), got 8}}
  %0 = llm.scaled_linear %x, %w weight_scale(%s : tensor<f32>) : tensor<4x8xi8>, tensor<16x8xi8> -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xi8>, %w: tensor<16x8xi8>, %s: tensor<f32>) {
  // expected-error @below {{expected dimension 0 of the result to be 4 (rows of input), got 5}}
  %0 = llm.scaled_linear %x, %w weight_scale(%s : tensor<f32>) : tensor<4x8xi8>, tensor<16x8xi8> -> tensor<5x16xf32>
  return
}

// -----

func.func @f(%x: tensor<8xi8>, %w: tensor<16x8xi8>, %s: tensor<f32>) {
  // expected-error @below {{expected the input of rank 2, got 'tensor<8xi8>'}}
  %0 = llm.scaled_linear %x, %w weight_scale(%s : tensor<f32>) : tensor<8xi8>, tensor<16x8xi8> -> tensor<4x16xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xi8>, %w: tensor<16x8xi8>, %s: tensor<5x1xf32>) {
  // expected-error @below {{expected dimension 0 of weight_scale to divide 16, got 5}}
  %0 = llm.scaled_linear %x, %w weight_scale(%s : tensor<5x1xf32>) : tensor<4x8xi8>, tensor<16x8xi8> -> tensor<4x16xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xi8>, %w: tensor<16x8xi8>, %s: tensor<f32>, %i: tensor<4x3xf32>) {
  // expected-error @below {{expected dimension 1 of input_scale to divide 8, got 3}}
  %0 = llm.scaled_linear %x, %w weight_scale(%s : tensor<f32>) input_scale(%i : tensor<4x3xf32>) : tensor<4x8xi8>, tensor<16x8xi8> -> tensor<4x16xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xi8>, %w: tensor<16x8xi8>, %s: tensor<f32>, %z: tensor<16xi8>) {
  // expected-error @below {{expected weight_zero to be a scalar or of rank 2, got 'tensor<16xi8>'}}
  %0 = llm.scaled_linear %x, %w weight_scale(%s : tensor<f32>) weight_zero(%z : tensor<16xi8>) : tensor<4x8xi8>, tensor<16x8xi8> -> tensor<4x16xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xi8>, %w: tensor<16x8xi8>, %s: tensor<f32>, %b: tensor<8xf32>) {
  // expected-error @below {{expected dimension 0 of the bias to be 16 (out features of the weight), got 8}}
  %0 = llm.scaled_linear %x, %w weight_scale(%s : tensor<f32>) bias(%b : tensor<8xf32>) : tensor<4x8xi8>, tensor<16x8xi8> -> tensor<4x16xf32>
  return
}
