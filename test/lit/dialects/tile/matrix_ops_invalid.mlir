// RUN: llmc-opt %s -split-input-file -verify-diagnostics

tile.kernel @columns() threads(128) {
  // expected-error @+1 {{wgmma takes 8 to 256 columns in steps of 8, got 260}}
  %z = tile.zero_acc : !tile.acc<64x260xf32>
}

// -----

!a = !tile.smem<128x64xbf16, swizzle = 128>
!b = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @rows() threads(128) {
  %a = tile.shared : !a
  %b = tile.shared : !b
  %z = tile.zero_acc : !tile.acc<64x64xf32>
  // expected-error @+1 {{A has 64 rows per warpgroup, got 128; take the rows of one with tile.warpgroup_slice}}
  %c = tile.wgmma %a, %b, %z : !a, !b, !tile.acc<64x64xf32> -> !tile.acc<64x64xf32>
}

// -----

!a = !tile.smem<64x128xbf16, swizzle = 128>
!b = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @k() threads(128) {
  %a = tile.shared : !a
  %b = tile.shared : !b
  %z = tile.zero_acc : !tile.acc<64x64xf32>
  // expected-error @+1 {{A has K = 128, B has K = 64}}
  %c = tile.wgmma %a, %b, %z : !a, !b, !tile.acc<64x64xf32> -> !tile.acc<64x64xf32>
}

// -----

!a = !tile.smem<64x128xf8E4M3FN, swizzle = 128>
!b = !tile.smem<128x128xf8E4M3FN, swizzle = 128>
tile.kernel @transposed() threads(128) {
  %a = tile.shared : !a
  %b = tile.shared : !b
  %z = tile.zero_acc : !tile.acc<64x128xf32>
  // expected-error @+1 {{only 16-bit operands have an MN-major form, got 'f8E4M3FN'}}
  %c = tile.wgmma %a, %b, %z transpose_b : !a, !b, !tile.acc<64x128xf32> -> !tile.acc<64x128xf32>
}

// -----

tile.kernel @wait() threads(128) {
  %z = tile.zero_acc : !tile.acc<64x64xf32>
  // expected-error @+1 {{cannot turn '!tile.acc<64x64xf32>' into '!tile.frag<64x128xf32>'}}
  %c = tile.wgmma_wait %z : !tile.acc<64x64xf32> -> !tile.frag<64x128xf32>
}
