// RUN: llmc-opt %s -split-input-file -verify-diagnostics

tile.kernel @constant(%x: !tile.ptr<f32, constant>, %i: i32, %f: f32) threads(32) {
  // expected-error @+1 {{writes constant memory}}
  tile.store %f, %x[%i] : f32, !tile.ptr<f32, constant>
}

// -----

tile.kernel @type(%x: !tile.ptr<f32>, %i: i32) threads(32) {
  // expected-error @+1 {{moves 'vector<8xbf16>' in memory of 'f32'}}
  %v = tile.load %x[%i] : !tile.ptr<f32> -> vector<8xbf16>
}

// -----

tile.kernel @wide(%i: i32) threads(32) {
  %s = tile.shared : !tile.smem<64x64xbf16, swizzle = 128>
  // expected-error @+1 {{a swizzled tile is accessed in at most 16 bytes, got 'vector<16xbf16>'}}
  %v = tile.load %s[%i, %i] : !tile.smem<64x64xbf16, swizzle = 128> -> vector<16xbf16>
}

// -----

tile.kernel @argmax(%f: f32) threads(32) {
  // expected-error @+1 {{of kind argmax takes 2 value(s), got 1}}
  %v = tile.reduce argmax %f : f32 -> f32
}

// -----

tile.kernel @carried(%n: i32, %f: f32) threads(32) {
  // expected-error @+1 {{the body takes the i32 element index and the 1 carried value(s)}}
  %v = tile.for_each %n to %n init(%f : f32) -> (f32) {
  ^bb0(%i: i32):
    tile.yield %f : f32
  }
}
