// RUN: llmc-opt %s -split-input-file -verify-diagnostics

tile.kernel @vector(%n: i32) threads(32) {
  // expected-error @+1 {{'tile.for_each' op expected a positive vector, got 0}}
  tile.for_each %n to %n vector(0) {
  ^bb0(%i: i32):
    tile.yield
  }
}

// -----

tile.kernel @scope(%n: i32) threads(32) {
  // expected-error @+1 {{expected scope warp, warpgroup or block (inside a role, block means the role), got role}}
  tile.for_each %n to %n scope(role) {
  ^bb0(%i: i32):
    tile.yield
  }
}

// -----

tile.kernel @carried(%n: i32, %f: f32) threads(32) {
  // expected-error @+1 {{expected a body that takes the i32 element index and the carried values ('i32', 'f32'), got ('i32')}}
  %v = tile.for_each %n to %n init(%f : f32) -> (f32) {
  ^bb0(%i: i32):
    tile.yield %f : f32
  }
}

// -----

tile.kernel @results(%n: i32, %f: f32) threads(32) {
  // expected-error @+1 {{expected results of the types of init ('f32'), got ('i32')}}
  %v = tile.for_each %n to %n init(%f : f32) -> (i32) {
  ^bb0(%i: i32, %x: f32):
    tile.yield %i : i32
  }
}

// -----

tile.kernel @yielded(%n: i32, %f: f32) threads(32) {
  // expected-error @+1 {{expected a yield of the types of the results ('f32'), got ('i32')}}
  %v = tile.for_each %n to %n init(%f : f32) -> (f32) {
  ^bb0(%i: i32, %x: f32):
    tile.yield %i : i32
  }
}

// -----

tile.kernel @argmax(%f: f32) threads(32) {
  // expected-error @+1 {{'tile.reduce' op expected 2 value(s) for kind argmax, got 1}}
  %v = tile.reduce argmax %f : f32 -> f32
}

// -----

tile.kernel @reduced(%f: f32) threads(32) {
  // expected-error @+1 {{expected results of the types of the values ('f32'), got ('i32')}}
  %v = tile.reduce add %f : f32 -> i32
}

// -----

tile.kernel @wide(%x: i64) threads(32) {
  // expected-error @+1 {{expected a value of type f32 or i32, got 'i64'}}
  %v = tile.reduce add %x : i64 -> i64
}

// -----

tile.kernel @index(%x: f32, %i: i64) threads(32) {
  // expected-error @+1 {{expected an i32 as the index of argmax, got 'i64'}}
  %v, %n = tile.reduce argmax %x, %i : f32, i64 -> f32, i64
}

// -----

tile.kernel @constant(%x: !tile.ptr<f32, constant>, %i: i32, %f: f32) threads(32) {
  // expected-error @+1 {{'tile.store' op expected a pointer that may be written, got '!tile.ptr<f32, constant>'}}
  tile.store %f, %x[%i] : f32, !tile.ptr<f32, constant>
}

// -----

tile.kernel @type(%x: !tile.ptr<f32>, %i: i32) threads(32) {
  // expected-error @+1 {{'tile.load' op expected a value of the element type of '!tile.ptr<f32>', got 'vector<8xbf16>'}}
  %v = tile.load %x[%i] : !tile.ptr<f32> -> vector<8xbf16>
}

// -----

tile.kernel @rank(%x: !tile.ptr<f32>, %i: i32) threads(32) {
  // expected-error @+1 {{expected a vector of one dimension, got 'vector<2x2xf32>'}}
  %v = tile.load %x[%i] : !tile.ptr<f32> -> vector<2x2xf32>
}

// -----

tile.kernel @indices(%i: i32) threads(32) {
  %s = tile.shared : !tile.smem<64x64xbf16, swizzle = 128>
  // expected-error @+1 {{expected 2 index(es) into '!tile.smem<64x64xbf16, swizzle = 128>', got 1}}
  %v = tile.load %s[%i] : !tile.smem<64x64xbf16, swizzle = 128> -> bf16
}

// -----

tile.kernel @span(%i: i32) threads(32) {
  %s = tile.shared : !tile.smem<64x64xbf16, swizzle = 128>
  // expected-error @+1 {{expected at most 16 bytes in one access to a swizzled tile, got 'vector<16xbf16>'}}
  %v = tile.load %s[%i, %i] : !tile.smem<64x64xbf16, swizzle = 128> -> vector<16xbf16>
}

// -----

tile.kernel @held(%x: !tile.ptr<bf16>, %i: i32, %v: f32) threads(32) {
  %h = arith.truncf %v : f32 to bf16
  // expected-error @+1 {{'tile.atomic' op expected memory of f32, i32 or i64, got 'bf16'}}
  %old = tile.atomic add %h, %x[%i : i32] : bf16, !tile.ptr<bf16> -> bf16
}

// -----

tile.kernel @old(%x: !tile.ptr<i32>, %i: i32) threads(32) {
  // expected-error @+1 {{expected a value and an old value of type 'i32', got 'i32' and 'i64'}}
  %old = tile.atomic add %i, %x[%i : i32] : i32, !tile.ptr<i32> -> i64
}

// -----

tile.kernel @maximum(%x: !tile.ptr<f32>, %i: i32, %v: f32) threads(32) {
  // expected-error @+1 {{expected i32 or i64 for a maximum, got 'f32'}}
  %old = tile.atomic max %v, %x[%i : i32] : f32, !tile.ptr<f32> -> f32
}

// -----

tile.kernel @one_thread(%n: i32) threads(32) {
  tile.role @load warps(1) elected {
    // expected-error @+1 {{'tile.uniform' op expected a role that is not elected: all lanes of a warp take part}}
    %u = tile.uniform %n : i32
  }
}
