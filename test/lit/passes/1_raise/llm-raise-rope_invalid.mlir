// RUN: llmc-opt %s --split-input-file --llm-raise-rope --verify-diagnostics

// Sinusoidal position embeddings are no rotation of heads.
func.func @sinusoidal(%positions: tensor<?xf32>, %h: tensor<?x4xf32>, %inv_freq: tensor<2xf32>, %t: index) -> tensor<?x4xf32> {
  %p = tensor.expand_shape %positions [[0, 1]] output_shape [%t, 1] : tensor<?xf32> into tensor<?x1xf32>
  %pb = llm.broadcast %p : tensor<?x1xf32> -> tensor<?x2xf32>
  %fb = llm.broadcast %inv_freq sizes(%t) : tensor<2xf32> -> tensor<?x2xf32>
  %f = arith.mulf %fb, %pb : tensor<?x2xf32>
  %c = math.cos %f : tensor<?x2xf32>
  %s = math.sin %f : tensor<?x2xf32>
  %e = tensor.concat dim(1) %s, %c : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x4xf32>
  // expected-error @+2 {{that is not a rotation of pairs of head elements: element 0 of a head is not an element times a cosine minus another times a sine}}
  // expected-note @+1 {{write the model's rotation in one of these forms or extend llm-raise-rope}}
  %y = arith.addf %h, %e : tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

// A rotation in the wrong direction in its second half.
func.func @wrong_sign(%positions: tensor<?xi32>, %k: tensor<?x4xf32>, %inv_freq: tensor<2xf32>, %t: index) -> tensor<?x4xf32> {
  %pf = arith.sitofp %positions : tensor<?xi32> to tensor<?xf32>
  %p = tensor.expand_shape %pf [[0, 1]] output_shape [%t, 1] : tensor<?xf32> into tensor<?x1xf32>
  %pb = llm.broadcast %p : tensor<?x1xf32> -> tensor<?x2xf32>
  %fb = llm.broadcast %inv_freq sizes(%t) : tensor<2xf32> -> tensor<?x2xf32>
  %f = arith.mulf %fb, %pb : tensor<?x2xf32>
  %c = math.cos %f : tensor<?x2xf32>
  %s = math.sin %f : tensor<?x2xf32>
  %k1 = tensor.extract_slice %k[0, 0] [%t, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
  %k2 = tensor.extract_slice %k[0, 2] [%t, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
  %a = arith.mulf %k1, %c : tensor<?x2xf32>
  %b = arith.mulf %k2, %s : tensor<?x2xf32>
  %first = arith.subf %a, %b : tensor<?x2xf32>
  %d = arith.mulf %k2, %c : tensor<?x2xf32>
  %e = arith.mulf %k1, %s : tensor<?x2xf32>
  %second = arith.subf %d, %e : tensor<?x2xf32>
  // expected-error @+2 {{element 2 of a head is not the element of its pair that a rotation gives}}
  // expected-note @+1 {{rotations of the pairs (i, i + n/2) or (2i, 2i + 1)}}
  %y = tensor.concat dim(1) %first, %second : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
