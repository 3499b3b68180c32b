// RUN: llmc-opt %s -split-input-file --tile-expand-math -verify-diagnostics

func.func @double(%x: f64) -> f64 {
  // expected-error @+1 {{'math.exp' op expected f32 (or a vector of it), got 'f64'; convert with arith.extf or arith.truncf}}
  %y = math.exp %x : f64
  return %y : f64
}

// -----

func.func @half(%x: vector<2xf16>) -> vector<2xf16> {
  // expected-error @+1 {{'math.tanh' op expected f32 (or a vector of it), got 'vector<2xf16>'}}
  %y = math.tanh %x : vector<2xf16>
  return %y : vector<2xf16>
}
