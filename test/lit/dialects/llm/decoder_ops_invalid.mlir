// RUN: llmc-opt --split-input-file --verify-diagnostics %s

func.func @f(%ids: tensor<2x2xi32>, %t: tensor<16x8xf32>) {
  // expected-error @below {{expected ids of rank 1, got 'tensor<2x2xi32>'}}
  %0 = llm.embedding %ids, %t : tensor<2x2xi32>, tensor<16x8xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @f(%ids: tensor<4xi32>, %t: tensor<16xf32>) {
  // expected-error @below {{expected the table of rank 2, got 'tensor<16xf32>'}}
  %0 = llm.embedding %ids, %t : tensor<4xi32>, tensor<16xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%ids: tensor<4xi32>, %t: tensor<16x8xf32>) {
  // expected-error @below {{expected the result of rank 2, got 'tensor<32xf32>'}}
  %0 = llm.embedding %ids, %t : tensor<4xi32>, tensor<16x8xf32> -> tensor<32xf32>
  return
}

// -----

func.func @f(%ids: tensor<4xi32>, %t: tensor<16x8xf32>) {
  // expected-error @below {{expected dimension 0 of the result to be 4 (ids), got 5}}
  %0 = llm.embedding %ids, %t : tensor<4xi32>, tensor<16x8xf32> -> tensor<5x8xf32>
  return
}

// -----

func.func @f(%ids: tensor<4xi32>, %t: tensor<16x8xf32>) {
  // expected-error @below {{expected dimension 1 of the result to be 8 (row of the table), got 9}}
  %0 = llm.embedding %ids, %t : tensor<4xi32>, tensor<16x8xf32> -> tensor<4x9xf32>
  return
}

// -----

func.func @f(%x: tensor<?x7xf32>, %w: tensor<16x8xf32>) {
  // expected-error @below {{expected dimension 1 of the input to be 8 (in features of the weight), got 7}}
  %0 = llm.linear %x, %w : tensor<?x7xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>) {
  // expected-error @below {{expected dimension 0 of the result to be 4 (rows of input), got 5}}
  %0 = llm.linear %x, %w : tensor<4x8xf32>, tensor<16x8xf32> -> tensor<5x16xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %w: tensor<16x8xf32>) {
  // expected-error @below {{expected dimension 1 of the result to be 16 (out features of the weight), got 8}}
  %0 = llm.linear %x, %w : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %w: tensor<16x8xf32>, %b: tensor<8xf32>) {
  // expected-error @below {{expected dimension 0 of the bias to be 16 (out features of the weight), got 8}}
  %0 = llm.linear %x, %w bias(%b) : tensor<?x8xf32>, tensor<16x8xf32>, tensor<8xf32> -> tensor<?x16xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x8xf32>, %w: tensor<16x8xf32>) {
  // expected-error @below {{expected the input of rank 2, got 'tensor<?x2x8xf32>'}}
  %0 = llm.linear %x, %w : tensor<?x2x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected the input and the result of one shape, got 'tensor<?x8xf32>' and 'tensor<?x9xf32>'}}
  %0 = llm.rms_norm %x {eps = 1.0 : f64} : tensor<?x8xf32> -> tensor<?x9xf32>
  return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error @below {{expected an input of rank 1 or more}}
  %0 = llm.rms_norm %x {eps = 1.0 : f64} : tensor<f32> -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %g: tensor<4xf32>) {
  // expected-error @below {{expected dimension 0 of gamma to be 8 (last dimension of the input), got 4}}
  %0 = llm.rms_norm %x, %g {eps = 1.0 : f64} : tensor<?x8xf32>, tensor<4xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %g: tensor<1x8xf32>) {
  // expected-error @below {{expected gamma of rank 1, got 'tensor<1x8xf32>'}}
  %0 = llm.layer_norm %x gamma(%g) {eps = 1.0 : f64} : tensor<?x8xf32>, tensor<1x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %g: tensor<4xf32>) {
  // expected-error @below {{expected dimension 0 of beta to be 8 (last dimension of the input), got 4}}
  %0 = llm.layer_norm %x beta(%g) {eps = 1.0 : f64} : tensor<?x8xf32>, tensor<4xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error @below {{expected an input of rank 1 or more}}
  %0 = llm.layer_norm %x {eps = 1.0 : f64} : tensor<f32> -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected the input and the result of one shape, got 'tensor<?x8xf32>' and 'tensor<?x2x4xf32>'}}
  %0 = llm.layer_norm %x {eps = 1.0 : f64} : tensor<?x8xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @f(%p: tensor<4xi32>, %f: tensor<8xf32>) {
  // expected-error @below {{expected dimension 0 of cos to be 4 (positions), got 5}}
  %c, %s = llm.rope_table %p, %f {attention_scaling = 1.0 : f64} : tensor<4xi32>, tensor<8xf32> -> tensor<5x8xf32>
  return
}

// -----

func.func @f(%p: tensor<?xi32>, %f: tensor<8xf32>) {
  // expected-error @below {{expected dimension 1 of cos to be 8 (inv_freq), got 16}}
  %c, %s = llm.rope_table %p, %f {attention_scaling = 1.0 : f64} : tensor<?xi32>, tensor<8xf32> -> tensor<?x16xf32>
  return
}

// -----

func.func @f(%p: tensor<?xi32>, %f: tensor<8xf32>) {
  // expected-error @below {{expected cos and sin of one shape, got 'tensor<?x8xf32>' and 'tensor<?x4xf32>'}}
  %c, %s = "llm.rope_table"(%p, %f) {attention_scaling = 1.0 : f64} : (tensor<?xi32>, tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x4xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x2x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x2xf32>) {
  // expected-error @below {{expected cos and sin of one shape, got 'tensor<?x4xf32>' and 'tensor<?x2xf32>'}}
  %0 = "llm.rope"(%x, %c, %s) {style = #llm.rope_style<half>} : (tensor<?x2x8xf32>, tensor<?x4xf32>, tensor<?x2xf32>) -> tensor<?x2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x8xf32>, %c: tensor<?x8xf32>) {
  // expected-error @below {{rotates 16 elements of each head, but heads have 8}}
  %0 = llm.rope half %x, %c, %c : tensor<?x2x8xf32>, tensor<?x8xf32> -> tensor<?x2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x16xf32>, %c: tensor<?x8xf32>) {
  // expected-error @below {{expected the input of rank 3, got 'tensor<?x16xf32>'}}
  %0 = llm.rope half %x, %c, %c : tensor<?x16xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  return
}

// -----

func.func @f(%x: tensor<4x2x16xf32>, %c: tensor<5x8xf32>) {
  // expected-error @below {{expected dimension 0 of cos to be 4 (rows of input), got 5}}
  %0 = llm.rope half %x, %c, %c : tensor<4x2x16xf32>, tensor<5x8xf32> -> tensor<4x2x16xf32>
  return
}

// -----

func.func @f(%q: tensor<4x3x8xf32>, %k: tensor<4x2x8xf32>) {
  // expected-error @below {{expected the number of query heads to be a multiple of the 2 key heads, got 3}}
  %0 = llm.attention %q, %k, %k {scale = 1.0 : f64} : tensor<4x3x8xf32>, tensor<4x2x8xf32>, tensor<4x2x8xf32> -> tensor<4x3x8xf32>
  return
}

// -----

func.func @f(%q: tensor<4x2x8xf32>, %k: tensor<4x?x8xf32>) {
  // expected-error @below {{expected static numbers of heads, got 2 and ? key heads}}
  %0 = llm.attention %q, %k, %k {scale = 1.0 : f64} : tensor<4x2x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x2x8xf32>
  return
}

// -----

func.func @f(%q: tensor<4x2x8xf32>, %k: tensor<5x2x8xf32>) {
  // expected-error @below {{expected dimension 0 of the query to be 5 (rows of the key), got 4}}
  %0 = llm.attention %q, %k, %k {scale = 1.0 : f64} : tensor<4x2x8xf32>, tensor<5x2x8xf32>, tensor<5x2x8xf32> -> tensor<4x2x8xf32>
  return
}

// -----

func.func @f(%q: tensor<4x2x8xf32>, %v: tensor<5x2x8xf32>) {
  // expected-error @below {{expected dimension 0 of the value to be 4 (rows of the key), got 5}}
  %0 = llm.attention %q, %q, %v {scale = 1.0 : f64} : tensor<4x2x8xf32>, tensor<4x2x8xf32>, tensor<5x2x8xf32> -> tensor<4x2x8xf32>
  return
}

// -----

func.func @f(%q: tensor<4x2x8xf32>, %v: tensor<4x1x8xf32>) {
  // expected-error @below {{expected dimension 1 of the value to be 2 (heads of the key), got 1}}
  %0 = llm.attention %q, %q, %v {scale = 1.0 : f64} : tensor<4x2x8xf32>, tensor<4x2x8xf32>, tensor<4x1x8xf32> -> tensor<4x2x8xf32>
  return
}

// -----

func.func @f(%q: tensor<4x2x8xf32>, %k: tensor<4x2x4xf32>) {
  // expected-error @below {{expected dimension 2 of the query to be 4 (head dimension of the keys), got 8}}
  %0 = llm.attention %q, %k, %k {scale = 1.0 : f64} : tensor<4x2x8xf32>, tensor<4x2x4xf32>, tensor<4x2x4xf32> -> tensor<4x2x4xf32>
  return
}

// -----

func.func @f(%q: tensor<4x2x8xf32>) {
  // expected-error @below {{expected dimension 2 of the result to be 8 (head dimension of the values), got 4}}
  %0 = llm.attention %q, %q, %q {scale = 1.0 : f64} : tensor<4x2x8xf32>, tensor<4x2x8xf32>, tensor<4x2x8xf32> -> tensor<4x2x4xf32>
  return
}

// -----

func.func @f(%q: tensor<4x2x8xf32>) {
  // expected-error @below {{expected dimension 1 of the result to be 2 (heads of the query), got 1}}
  %0 = llm.attention %q, %q, %q {scale = 1.0 : f64} : tensor<4x2x8xf32>, tensor<4x2x8xf32>, tensor<4x2x8xf32> -> tensor<4x1x8xf32>
  return
}

// -----

func.func @f(%q: tensor<4x2x8xf32>) {
  // expected-error @below {{expected a positive window, got 0}}
  %0 = llm.attention %q, %q, %q {scale = 1.0 : f64, window = 0 : i64} : tensor<4x2x8xf32>, tensor<4x2x8xf32>, tensor<4x2x8xf32> -> tensor<4x2x8xf32>
  return
}

// -----

func.func @f(%q: tensor<4x2x8xf32>) {
  // expected-error @below {{expected a positive softcap, got 0.000000e+00}}
  %0 = llm.attention %q, %q, %q {scale = 1.0 : f64, softcap = 0.0 : f64} : tensor<4x2x8xf32>, tensor<4x2x8xf32>, tensor<4x2x8xf32> -> tensor<4x2x8xf32>
  return
}

// -----

func.func @f(%q: tensor<4x2x8xf32>, %s: tensor<3xf32>) {
  // expected-error @below {{expected dimension 0 of sinks to be 2 (heads of the query), got 3}}
  %0 = llm.attention %q, %q, %q sinks(%s : tensor<3xf32>) {scale = 1.0 : f64} : tensor<4x2x8xf32>, tensor<4x2x8xf32>, tensor<4x2x8xf32> -> tensor<4x2x8xf32>
  return
}

// -----

func.func @f(%q: tensor<4x2x8xf32>, %s: tensor<3xf32>) {
  // expected-error @below {{expected dimension 0 of alibi_slopes to be 2 (heads of the query), got 3}}
  %0 = llm.attention %q, %q, %q alibi(%s : tensor<3xf32>) {scale = 1.0 : f64} : tensor<4x2x8xf32>, tensor<4x2x8xf32>, tensor<4x2x8xf32> -> tensor<4x2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected the input and the result of one shape, got 'tensor<?x8xf32>' and 'tensor<?x4xf32>'}}
  %0 = llm.activation silu %x : tensor<?x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{unknown activation_kind 'swish'}}
  %0 = llm.activation swish %x : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %y: tensor<?x4xf32>) {
  // expected-error @below {{expected the gate and up of one shape, got 'tensor<?x8xf32>' and 'tensor<?x4xf32>'}}
  %0 = llm.glu silu %x, %y : tensor<?x8xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected the gate and the result of one shape, got 'tensor<?x8xf32>' and 'tensor<?x4xf32>'}}
  %0 = llm.glu silu %x, %x : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x7xf32>) {
  // expected-error @below {{expected a static, even last dimension (gate and up), got 'tensor<?x7xf32>'}}
  %0 = llm.packed_glu silu split %x : tensor<?x7xf32> -> tensor<?x3xf32>
  return
}

// -----

func.func @f(%x: tensor<4x?xf32>) {
  // expected-error @below {{expected a static, even last dimension (gate and up), got 'tensor<4x?xf32>'}}
  %0 = llm.packed_glu silu split %x : tensor<4x?xf32> -> tensor<4x?xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected dimension 1 of the result to be 4 (half of the input), got 8}}
  %0 = llm.packed_glu silu split %x : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected a block that divides the 4 columns of gate and of up, got 3}}
  %0 = llm.packed_glu silu interleaved %x {block = 3 : i64} : tensor<?x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %r: tensor<4xi32>) {
  // expected-error @below {{expected dimension 0 of the result to be 4 (rows), got 5}}
  %0 = llm.gather_rows %x, %r : tensor<?x8xf32>, tensor<4xi32> -> tensor<5x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %r: tensor<?xi32>) {
  // expected-error @below {{expected dimension 1 of the result to be 8 (row of the input), got 4}}
  %0 = llm.gather_rows %x, %r : tensor<?x8xf32>, tensor<?xi32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %r: tensor<?xi32>) {
  // expected-error @below {{expected equal element types, got 'tensor<?x8xf32>' and 'tensor<?x8xbf16>'}}
  %0 = llm.gather_rows %x, %r : tensor<?x8xf32>, tensor<?xi32> -> tensor<?x8xbf16>
  return
}

// -----

func.func @f(%x: tensor<f32>, %r: tensor<?xi32>) {
  // expected-error @below {{expected an input of rank 1 or more}}
  %0 = llm.gather_rows %x, %r : tensor<f32>, tensor<?xi32> -> tensor<f32>
  return
}

// -----

func.func @f(%l: tensor<?x16xf32>, %t: tensor<4xf32>, %f: tensor<?xf32>, %i: tensor<?xi32>, %s: tensor<?xi64>) {
  // expected-error @below {{result #0 must be 1D tensor of 32-bit signless integer values}}
  %0 = llm.sample %l, %f, %i, %f, %f, %s, %i : (tensor<?x16xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>) -> tensor<?xf32>
  return
}

// -----

func.func @f(%l: tensor<4x16xf32>, %t: tensor<5xf32>, %f: tensor<4xf32>, %i: tensor<4xi32>, %s: tensor<4xi64>) {
  // expected-error @below {{expected dimension 0 of temperature to be 4 (rows of the logits), got 5}}
  %0 = llm.sample %l, %t, %i, %f, %f, %s, %i : (tensor<4x16xf32>, tensor<5xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi64>, tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%l: tensor<4x16xf32>, %f: tensor<4xf32>, %i: tensor<4xi32>, %s: tensor<4xi64>) {
  // expected-error @below {{expected dimension 0 of the result to be 4 (rows of the logits), got 5}}
  %0 = llm.sample %l, %f, %i, %f, %f, %s, %i : (tensor<4x16xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi64>, tensor<4xi32>) -> tensor<5xi32>
  return
}

// -----

func.func @f(%l: tensor<16xf32>, %f: tensor<?xf32>, %i: tensor<?xi32>, %s: tensor<?xi64>) {
  // expected-error @below {{expected logits of rank 2, got 'tensor<16xf32>'}}
  %0 = llm.sample %l, %f, %i, %f, %f, %s, %i : (tensor<16xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>) -> tensor<?xi32>
  return
}
