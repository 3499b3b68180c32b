// RUN: llmc-opt --split-input-file --verify-diagnostics %s

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected 1 or more ranks, got 0}}
  %0 = llm.all_reduce %x {ranks = 0 : i64} : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected the input and the result of one shape, got 'tensor<?x8xf32>' and 'tensor<?x4xf32>'}}
  %0 = llm.all_reduce %x {ranks = 2 : i64} : tensor<?x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected dim in [0, 2), got 2}}
  %0 = llm.all_gather %x {dim = 2 : i64, ranks = 2 : i64} : tensor<?x8xf32> -> tensor<?x16xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected dimension 1 of the result to be 16 (input of all ranks), got 8}}
  %0 = llm.all_gather %x {dim = 1 : i64, ranks = 2 : i64} : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected the result of rank 2, got 'tensor<16xf32>'}}
  %0 = llm.all_gather %x {dim = 1 : i64, ranks = 2 : i64} : tensor<?x8xf32> -> tensor<16xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected dimension 1 of the input to be 6 (result of all ranks), got 8}}
  %0 = llm.reduce_scatter %x {dim = 1 : i64, ranks = 3 : i64} : tensor<?x8xf32> -> tensor<?x2xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected 1 or more ranks, got -1}}
  %0 = llm.reduce_scatter %x {dim = 1 : i64, ranks = -1 : i64} : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}
