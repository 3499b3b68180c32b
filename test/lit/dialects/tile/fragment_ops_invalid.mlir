// RUN: llmc-opt %s -split-input-file -verify-diagnostics

tile.kernel @rows(%f: f32) threads(128) {
  // expected-error @+1 {{layout accumulator has 16 rows (a warp) or 64 (a warpgroup), got 32}}
  %s = tile.fill %f : f32 -> !tile.frag<32x128xf32>
}

// -----

tile.kernel @layouts(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  %y = tile.fill %f : f32 -> !tile.frag<64x128xf32>
  // expected-error @+1 {{do not lie the same way over the threads}}
  %z = tile.map %x, %y : !tile.frag<64x64xf32>, !tile.frag<64x128xf32> -> !tile.frag<64x64xf32> {
  ^bb0(%a: f32, %b: f32, %row: i32, %col: i32):
    tile.yield %a : f32
  }
}

// -----

tile.kernel @body(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  // expected-error @+1 {{the body takes one value per fragment, the row and the column: 3 arguments, got 2}}
  tile.epilogue %x : !tile.frag<64x64xf32> {
  ^bb0(%a: f32, %row: i32):
    tile.yield
  }
}

// -----

tile.kernel @convert(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  %h = tile.convert %x : !tile.frag<64x64xf32> -> !tile.frag<64x64xbf16, operand_a>
  // expected-error @+1 {{cannot change layout operand_a to accumulator without moving data between threads}}
  %y = tile.convert %h : !tile.frag<64x64xbf16, operand_a> -> !tile.frag<64x64xf32>
}

// -----

tile.kernel @staging(%d: !tile.tensor_map<64x64xbf16, swizzle = 128>, %r: i32, %f: f32) threads(128) {
  %out = tile.shared : !tile.smem<64x64xbf16, swizzle = 128>
  %x = tile.fill %f : f32 -> !tile.frag<64x128xf32>
  // expected-error @+1 {{stores 16-bit fragments of layout accumulator, got '!tile.frag<64x128xf32>'}}
  tile.store_tma %x, %out -> %d[%r, %r] : !tile.frag<64x128xf32>, !tile.smem<64x64xbf16, swizzle = 128> -> !tile.tensor_map<64x64xbf16, swizzle = 128>
}
