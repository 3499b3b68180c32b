// RUN: llmc-opt --split-input-file --verify-diagnostics %s

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%c: !llm.kv_cache<2 x !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>>) {
  // expected-error @below {{expected a layer in [0, 2), got 2}}
  %0 = llm.kv_layer %c[2] : !llm.kv_cache<2 x !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>> -> !kv
  return
}

// -----

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%c: !llm.kv_cache<2 x !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>>) {
  // expected-error @below {{expected a layer in [0, 2), got -1}}
  %0 = llm.kv_layer %c[-1] : !llm.kv_cache<2 x !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>> -> !kv
  return
}

// -----

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%c: !llm.kv_cache<1 x !llm.kv<heads = 1, head_dim = 8, v_head_dim = 4, block = 16, element = f32>>) {
  // expected-error @below {{layer 0 is '!llm.kv<heads = 1, head_dim = 8, v_head_dim = 4, block = 16, element = f32>', got '!llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>'}}
  %0 = llm.kv_layer %c[0] : !llm.kv_cache<1 x !llm.kv<heads = 1, head_dim = 8, v_head_dim = 4, block = 16, element = f32>> -> !kv
  return
}

// -----

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%k: tensor<?x16xf32>, %v: tensor<?x2x4xf32>, %c: !kv, %b: !llm.batch) {
  // expected-error @below {{expected the key of rank 3, got 'tensor<?x16xf32>'}}
  llm.kv_append %k, %v, %c, %b : tensor<?x16xf32>, tensor<?x2x4xf32>, !kv
  return
}

// -----

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%k: tensor<?x2x8xf32>, %v: tensor<?x8xf32>, %c: !kv, %b: !llm.batch) {
  // expected-error @below {{expected the value of rank 3, got 'tensor<?x8xf32>'}}
  llm.kv_append %k, %v, %c, %b : tensor<?x2x8xf32>, tensor<?x8xf32>, !kv
  return
}

// -----

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%k: tensor<?x3x8xf32>, %v: tensor<?x2x4xf32>, %c: !kv, %b: !llm.batch) {
  // expected-error @below {{expected dimension 1 of the key to be 2 (heads of the cache), got 3}}
  llm.kv_append %k, %v, %c, %b : tensor<?x3x8xf32>, tensor<?x2x4xf32>, !kv
  return
}

// -----

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%k: tensor<?x2x4xf32>, %v: tensor<?x2x4xf32>, %c: !kv, %b: !llm.batch) {
  // expected-error @below {{expected dimension 2 of the key to be 8 (head_dim of the cache), got 4}}
  llm.kv_append %k, %v, %c, %b : tensor<?x2x4xf32>, tensor<?x2x4xf32>, !kv
  return
}

// -----

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%k: tensor<3x2x8xf32>, %v: tensor<4x2x4xf32>, %c: !kv, %b: !llm.batch) {
  // expected-error @below {{expected dimension 0 of the value to be 3 (rows of the key), got 4}}
  llm.kv_append %k, %v, %c, %b : tensor<3x2x8xf32>, tensor<4x2x4xf32>, !kv
  return
}

// -----

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%k: tensor<?x2x8xf32>, %v: tensor<?x1x4xf32>, %c: !kv, %b: !llm.batch) {
  // expected-error @below {{expected dimension 1 of the value to be 2 (heads of the cache), got 1}}
  llm.kv_append %k, %v, %c, %b : tensor<?x2x8xf32>, tensor<?x1x4xf32>, !kv
  return
}

// -----

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%k: tensor<?x2x8xf32>, %v: tensor<?x2x8xf32>, %c: !kv, %b: !llm.batch) {
  // expected-error @below {{expected dimension 2 of the value to be 4 (v_head_dim of the cache), got 8}}
  llm.kv_append %k, %v, %c, %b : tensor<?x2x8xf32>, tensor<?x2x8xf32>, !kv
  return
}

// -----

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%q: tensor<?x4x4xf32>, %c: !kv, %b: !llm.batch) {
  // expected-error @below {{expected dimension 2 of the query to be 8 (head dimension of the keys), got 4}}
  %0 = llm.paged_attention %q, %c, %b {scale = 1.0 : f64} : tensor<?x4x4xf32>, !kv -> tensor<?x4x4xf32>
  return
}

// -----

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%q: tensor<?x4x8xf32>, %c: !kv, %b: !llm.batch) {
  // expected-error @below {{expected dimension 2 of the result to be 4 (head dimension of the values), got 8}}
  %0 = llm.paged_attention %q, %c, %b {scale = 1.0 : f64} : tensor<?x4x8xf32>, !kv -> tensor<?x4x8xf32>
  return
}

// -----

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%q: tensor<?x3x8xf32>, %c: !kv, %b: !llm.batch) {
  // expected-error @below {{expected the number of query heads to be a multiple of the 2 key heads, got 3}}
  %0 = llm.paged_attention %q, %c, %b {scale = 1.0 : f64} : tensor<?x3x8xf32>, !kv -> tensor<?x3x4xf32>
  return
}

// -----

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%q: tensor<?x?x8xf32>, %c: !kv, %b: !llm.batch) {
  // expected-error @below {{expected static numbers of heads, got ? and 2 key heads}}
  %0 = llm.paged_attention %q, %c, %b {scale = 1.0 : f64} : tensor<?x?x8xf32>, !kv -> tensor<?x?x4xf32>
  return
}

// -----

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%q: tensor<?x4x8xf32>, %c: !kv, %b: !llm.batch, %s: tensor<2xf32>) {
  // expected-error @below {{expected dimension 0 of sinks to be 4 (heads of the query), got 2}}
  %0 = llm.paged_attention %q, %c, %b sinks(%s : tensor<2xf32>) {scale = 1.0 : f64} : tensor<?x4x8xf32>, !kv -> tensor<?x4x4xf32>
  return
}

// -----

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%q: tensor<?x4x8xf32>, %c: !kv, %b: !llm.batch, %s: tensor<2xf32>) {
  // expected-error @below {{expected dimension 0 of alibi_slopes to be 4 (heads of the query), got 2}}
  %0 = llm.paged_attention %q, %c, %b alibi(%s : tensor<2xf32>) {scale = 1.0 : f64} : tensor<?x4x8xf32>, !kv -> tensor<?x4x4xf32>
  return
}

// -----

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%q: tensor<?x4x8xf32>, %c: !kv, %b: !llm.batch) {
  // expected-error @below {{expected a positive window, got -4}}
  %0 = llm.paged_attention %q, %c, %b {scale = 1.0 : f64, window = -4 : i64} : tensor<?x4x8xf32>, !kv -> tensor<?x4x4xf32>
  return
}

// -----

!kv = !llm.kv<heads = 2, head_dim = 8, v_head_dim = 4, block = 16, element = f32>
func.func @f(%q: tensor<?x4x8xf32>, %c: !kv, %b: !llm.batch) {
  // expected-error @below {{expected a positive softcap, got -1.000000e+00}}
  %0 = llm.paged_attention %q, %c, %b {scale = 1.0 : f64, softcap = -1.0 : f64} : tensor<?x4x8xf32>, !kv -> tensor<?x4x4xf32>
  return
}

// -----

func.func @f(%q: tensor<?x4x8xf32>, %c: !llm.kv<heads = 1, head_dim = 8, v_head_dim = 0, block = 16, element = f32>, %b: !llm.batch) {
  // expected-error @below {{expected values of at most 8 elements, a prefix of the keys, got 16}}
  %0 = llm.paged_attention %q, %c, %b {scale = 1.0 : f64} : tensor<?x4x8xf32>, !llm.kv<heads = 1, head_dim = 8, v_head_dim = 0, block = 16, element = f32> -> tensor<?x4x16xf32>
  return
}
