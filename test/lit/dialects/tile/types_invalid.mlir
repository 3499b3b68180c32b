// RUN: llmc-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{expected box dimensions from 1 to 256, got 512}}
tile.kernel @box(%a: !tile.tensor_map<512x64xbf16, swizzle = 128>) threads(32) {
}

// -----

// expected-error @+1 {{expected a TMA box of 1 to 5 dimensions, got 6}}
tile.kernel @rank(%a: !tile.tensor_map<1x1x1x1x1x64xbf16>) threads(32) {
}

// -----

// expected-error @+1 {{expected an innermost box dimension of at most the 128 bytes of the swizzle, got 256; use several boxes}}
tile.kernel @span(%a: !tile.tensor_map<64x128xbf16, swizzle = 128>) threads(32) {
}

// -----

// expected-error @+1 {{expected an innermost box dimension of a multiple of 16 bytes, got 4 x 'bf16' = 8}}
tile.kernel @chunk(%a: !tile.tensor_map<64x4xbf16>) threads(32) {
}

// -----

// expected-error @+1 {{expected a swizzle of 0, 32, 64 or 128 bytes, got 48}}
tile.kernel @swizzle(%a: !tile.tensor_map<64x64xbf16, swizzle = 48>) threads(32) {
}

// -----

// expected-error @+1 {{unknown parameter 'swizle'}}
tile.kernel @parameter(%a: !tile.tensor_map<64x64xbf16, swizle = 128>) threads(32) {
}

// -----

tile.kernel @element() threads(32) {
  // expected-error @+1 {{expected an element type that is an integer or float of whole bytes, got 'i4'}}
  %t = tile.shared : !tile.smem<64x64xi4>
}

// -----

tile.kernel @dimensions() threads(32) {
  // expected-error @+1 {{expected one positive dimension or more, got [64, 0]}}
  %t = tile.shared : !tile.smem<64x0xf32>
}

// -----

tile.kernel @swizzled_rank() threads(32) {
  // expected-error @+1 {{expected two dimensions in a swizzled tile, got 1}}
  %t = tile.shared : !tile.smem<64xf32, swizzle = 128>
}

// -----

tile.kernel @row() threads(32) {
  // expected-error @+1 {{expected rows of a multiple of the 128 bytes of the swizzle, got 96}}
  %t = tile.shared : !tile.smem<64x48xbf16, swizzle = 128>
}

// -----

tile.kernel @rows() threads(32) {
  // expected-error @+1 {{expected a multiple of 8 rows in a swizzled tile, got 12}}
  %t = tile.shared : !tile.smem<12x64xbf16, swizzle = 128>
}

// -----

tile.kernel @stages() threads(32) {
  // expected-error @+1 {{expected 1 to 64 stages, got 0}}
  %t = tile.ring : !tile.ring<0, !tile.smem<64xf32>>
}

// -----

tile.kernel @slots() threads(32) {
  // expected-error @+1 {{expected one slot or more, got none}}
  %t = tile.ring : !tile.ring<2>
}

// -----

tile.kernel @acc_rows() threads(128) {
  // expected-error @+1 {{expected 64 rows, those of a warpgroup, and columns, got [32, 64]}}
  %z = tile.zero_acc : !tile.acc<32x64xf32>
}

// -----

tile.kernel @acc_columns() threads(128) {
  // expected-error @+1 {{expected 8 to 256 columns in steps of 8, got 260}}
  %z = tile.zero_acc : !tile.acc<64x260xf32>
}

// -----

tile.kernel @acc_element() threads(128) {
  // expected-error @+1 {{expected f32 elements, got 'bf16'}}
  %z = tile.zero_acc : !tile.acc<64x64xbf16>
}

// -----

tile.kernel @frag_layout(%f: f32) threads(128) {
  // expected-error @+1 {{unknown fragment layout 'columns'}}
  %s = tile.fill %f : f32 -> !tile.frag<64x128xf32, columns>
}

// -----

tile.kernel @frag_rank(%f: f32) threads(128) {
  // expected-error @+1 {{expected 1 dimension(s) in layout rows, got 2}}
  %s = tile.fill %f : f32 -> !tile.frag<64x128xf32, rows>
}

// -----

tile.kernel @frag_rows(%f: f32) threads(128) {
  // expected-error @+1 {{expected 16 rows (a warp) or 64 (a warpgroup) in layout accumulator, got 32}}
  %s = tile.fill %f : f32 -> !tile.frag<32x128xf32>
}

// -----

tile.kernel @frag_columns(%f: f32) threads(128) {
  // expected-error @+1 {{expected columns in steps of 16 in layout operand_a, got 24}}
  %s = tile.fill %f : f32 -> !tile.frag<64x24xf16, operand_a>
}

// -----

tile.kernel @frag_element(%f: f32) threads(128) {
  // expected-error @+1 {{expected 16-bit elements in layout operand_a, got 'f32'}}
  %s = tile.fill %f : f32 -> !tile.frag<64x32xf32, operand_a>
}
