// RUN: llmc-opt %s -split-input-file -verify-diagnostics

tile.kernel @length(%s: f32) threads(32) {
  %x = vector.broadcast %s : f32 to vector<4xf32>
  // expected-error @+1 {{'tile.narrow' op expected a result of the operand's shape, got 'vector<4xf32>' to 'vector<2xf8E4M3FN>'}}
  %a = tile.narrow %x : vector<4xf32> -> vector<2xf8E4M3FN>
}

// -----

tile.kernel @odd(%s: f32) threads(32) {
  %x = vector.broadcast %s : f32 to vector<3xf32>
  // expected-error @+1 {{expected a scalar or a vector of an even number of elements, which convert in pairs, got 'vector<3xf32>'}}
  %a = tile.narrow %x : vector<3xf32> -> vector<3xf8E4M3FN>
}

// -----

tile.kernel @source(%p: !tile.ptr<bf16>, %i: i32) threads(32) {
  %x = tile.load %p[%i] : !tile.ptr<bf16> -> bf16
  // expected-error @+1 {{operand #0 must be f32 or a vector of it, but got 'bf16'}}
  %a = tile.narrow %x : bf16 -> f8E4M3FN
}

// -----

tile.kernel @scalar(%p: !tile.ptr<f8E4M3FN>, %i: i32) threads(32) {
  %x = tile.load %p[%i] : !tile.ptr<f8E4M3FN> -> f8E4M3FN
  // expected-error @+1 {{'tile.widen' op expected a result of the operand's shape, got 'f8E4M3FN' to 'vector<2xf32>'}}
  %a = tile.widen %x : f8E4M3FN -> vector<2xf32>
}

// -----

tile.kernel @target(%p: !tile.ptr<f8E4M3FN>, %i: i32) threads(32) {
  %x = tile.load %p[%i] : !tile.ptr<f8E4M3FN> -> f8E4M3FN
  // expected-error @+1 {{result #0 must be f32 or a vector of it, but got 'bf16'}}
  %a = tile.widen %x : f8E4M3FN -> bf16
}
