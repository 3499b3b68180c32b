// RUN: llmc-opt %s -split-input-file -verify-diagnostics

!a = !tile.smem<128x64xbf16, swizzle = 128>
!b = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @rows() threads(128) {
  %a = tile.shared : !a
  %b = tile.shared : !b
  %z = tile.zero_acc : !tile.acc<64x64xf32>
  // expected-error @+1 {{'tile.wgmma' op expected an A of 64 rows, those of a warpgroup, got 128; take the rows of one with tile.warpgroup_slice}}
  %c = tile.wgmma %a, %b, %z : !a, !b, !tile.acc<64x64xf32> -> !tile.acc<64x64xf32>
}

// -----

!a = !tile.smem<64x128xbf16, swizzle = 128>
!b = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @k() threads(128) {
  %a = tile.shared : !a
  %b = tile.shared : !b
  %z = tile.zero_acc : !tile.acc<64x64xf32>
  // expected-error @+1 {{expected one K in A and B, got 128 and 64}}
  %c = tile.wgmma %a, %b, %z : !a, !b, !tile.acc<64x64xf32> -> !tile.acc<64x64xf32>
}

// -----

!a = !tile.smem<64x128xf8E4M3FN, swizzle = 128>
!b = !tile.smem<128x128xf8E4M3FN, swizzle = 128>
tile.kernel @transposed() threads(128) {
  %a = tile.shared : !a
  %b = tile.shared : !b
  %z = tile.zero_acc : !tile.acc<64x128xf32>
  // expected-error @+1 {{expected 16-bit elements for transpose_b, got 'f8E4M3FN'}}
  %c = tile.wgmma %a, %b, %z transpose_b : !a, !b, !tile.acc<64x128xf32> -> !tile.acc<64x128xf32>
}

// -----

!a = !tile.smem<64x64xbf16, swizzle = 128>
!b = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @result() threads(128) {
  %a = tile.shared : !a
  %b = tile.shared : !b
  %z = tile.zero_acc : !tile.acc<64x64xf32>
  // expected-error @+1 {{expected a result of the accumulator's shape, '!tile.acc<64x64xf32>', got '!tile.acc<64x32xf32>'}}
  %c = tile.wgmma %a, %b, %z : !a, !b, !tile.acc<64x64xf32> -> !tile.acc<64x32xf32>
}

// -----

!a = !tile.smem<64x64xbf16, swizzle = 128>
!b = !tile.smem<64x64xbf16>
tile.kernel @plain_b() threads(128) {
  %a = tile.shared : !a
  %b = tile.shared : !b
  %z = tile.zero_acc : !tile.acc<64x64xf32>
  // expected-error @+1 {{expected a swizzled B, got '!tile.smem<64x64xbf16>'}}
  %c = tile.wgmma %a, %b, %z : !a, !b, !tile.acc<64x64xf32> -> !tile.acc<64x64xf32>
}

// -----

!a = !tile.smem<64x64xbf16>
!b = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @plain_a() threads(128) {
  %a = tile.shared : !a
  %b = tile.shared : !b
  %z = tile.zero_acc : !tile.acc<64x64xf32>
  // expected-error @+1 {{expected a swizzled A, got '!tile.smem<64x64xbf16>'}}
  %c = tile.wgmma %a, %b, %z : !a, !b, !tile.acc<64x64xf32> -> !tile.acc<64x64xf32>
}

// -----

!b = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @accumulator(%h: f32) threads(128) {
  %a = tile.shared : !b
  %b = tile.shared : !b
  %x = tile.fill %h : f32 -> !tile.frag<64x64xf32>
  %z = tile.convert %x : !tile.frag<64x64xf32> -> !tile.frag<64x64xbf16>
  // expected-error @+1 {{expected an f32 fragment of layout accumulator to add to, got '!tile.frag<64x64xbf16>'}}
  %c = tile.wgmma %a, %b, %z : !b, !b, !tile.frag<64x64xbf16> -> !tile.acc<64x64xf32>
}

// -----

!b = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @registers(%h: f32) threads(128) {
  %b = tile.shared : !b
  %x = tile.fill %h : f32 -> !tile.frag<64x64xf32>
  %z = tile.zero_acc : !tile.acc<64x64xf32>
  // expected-error @+1 {{expected an A of layout operand_a, got '!tile.frag<64x64xf32>'}}
  %c = tile.wgmma %x, %b, %z : !tile.frag<64x64xf32>, !b, !tile.acc<64x64xf32> -> !tile.acc<64x64xf32>
}

// -----

!a = !tile.smem<64x64xbf16, swizzle = 128>
!b = !tile.smem<32x64xbf16, swizzle = 128>
tile.kernel @shape() threads(128) {
  %a = tile.shared : !a
  %b = tile.shared : !b
  %z = tile.zero_acc : !tile.acc<64x64xf32>
  // expected-error @+1 {{expected an accumulator of 64 x 32, the rows of A and columns of B, got 64 x 64}}
  %c = tile.wgmma %a, %b, %z : !a, !b, !tile.acc<64x64xf32> -> !tile.acc<64x64xf32>
}

// -----

!a = !tile.smem<64x64xbf16, swizzle = 128>
!b = !tile.smem<64x64xf16, swizzle = 128>
tile.kernel @elements() threads(128) {
  %a = tile.shared : !a
  %b = tile.shared : !b
  %z = tile.zero_acc : !tile.acc<64x64xf32>
  // expected-error @+1 {{expected one element type in A and B, got 'bf16' and 'f16'}}
  %c = tile.wgmma %a, %b, %z : !a, !b, !tile.acc<64x64xf32> -> !tile.acc<64x64xf32>
}

// -----

tile.kernel @wait() threads(128) {
  %z = tile.zero_acc : !tile.acc<64x64xf32>
  // expected-error @+1 {{'tile.wgmma_wait' op expected a result that is '!tile.acc<64x64xf32>' or the f32 fragment of its shape, got '!tile.frag<64x128xf32>'}}
  %c = tile.wgmma_wait %z : !tile.acc<64x64xf32> -> !tile.frag<64x128xf32>
}

// -----

tile.kernel @waits() threads(128) {
  %z = tile.zero_acc : !tile.acc<64x64xf32>
  // expected-error @+1 {{expected one result for each of 1 accumulator(s), got 2}}
  %c:2 = tile.wgmma_wait %z : !tile.acc<64x64xf32> -> !tile.frag<64x64xf32>, !tile.frag<64x64xf32>
}

// -----

!s = !tile.smem<16x64xf16, swizzle = 128>
!b = !tile.smem<32x64xf16, swizzle = 128>
tile.kernel @mma_result(%f: f32) threads(32) {
  %s = tile.shared : !s
  %b = tile.shared : !b
  %a = tile.load_matrix %s : !s -> !tile.frag<16x64xf16, operand_a>
  %c = tile.fill %f : f32 -> !tile.frag<16x32xf32>
  // expected-error @+1 {{'tile.mma' op expected a result of the accumulator's type, '!tile.frag<16x32xf32>', got '!tile.frag<16x64xf32>'}}
  %d = tile.mma [%a], %b, [%c] : [!tile.frag<16x64xf16, operand_a>], !b, [!tile.frag<16x32xf32>] -> !tile.frag<16x64xf32>
}

// -----

!b = !tile.smem<32x64xf16, swizzle = 128>
tile.kernel @mma_operand(%f: f32) threads(32) {
  %b = tile.shared : !b
  %c = tile.fill %f : f32 -> !tile.frag<16x32xf32>
  // expected-error @+1 {{expected an A of layout operand_a and an f32 accumulator, got '!tile.frag<16x32xf32>' and '!tile.frag<16x32xf32>'}}
  %d = tile.mma [%c], %b, [%c] : [!tile.frag<16x32xf32>], !b, [!tile.frag<16x32xf32>] -> !tile.frag<16x32xf32>
}

// -----

!s = !tile.smem<16x64xf16, swizzle = 128>
tile.kernel @matrix() threads(32) {
  %s = tile.shared : !s
  // expected-error @+1 {{'tile.load_matrix' op expected an operand_a fragment of the shape and element type of '!tile.smem<16x64xf16, swizzle = 128>', got '!tile.frag<16x32xf16, operand_a>'}}
  %a = tile.load_matrix %s : !s -> !tile.frag<16x32xf16, operand_a>
}

// -----

tile.kernel @mma_rank(%f: f32) threads(32) {
  %s = tile.shared : !tile.smem<16x64xf16, swizzle = 128>
  %b = tile.shared : !tile.smem<64xf16>
  %a = tile.load_matrix %s : !tile.smem<16x64xf16, swizzle = 128> -> !tile.frag<16x64xf16, operand_a>
  %c = tile.fill %f : f32 -> !tile.frag<16x32xf32>
  // expected-error @+1 {{expected operands of two dimensions, got '!tile.frag<16x64xf16, operand_a>' and '!tile.smem<64xf16>'}}
  %d = tile.mma [%a], %b, [%c] : [!tile.frag<16x64xf16, operand_a>], !tile.smem<64xf16>, [!tile.frag<16x32xf32>] -> !tile.frag<16x32xf32>
}

// -----

!s = !tile.smem<16x64xf16, swizzle = 128>
!b = !tile.smem<32x64xf16, swizzle = 128>
tile.kernel @mma_count(%f: f32) threads(32) {
  %s = tile.shared : !s
  %b = tile.shared : !b
  %a = tile.load_matrix %s : !s -> !tile.frag<16x64xf16, operand_a>
  %c = tile.fill %f : f32 -> !tile.frag<16x32xf32>
  // expected-error @+1 {{expected one accumulator and one result for each of one A or more, got 2 A, 1 accumulator(s) and 1 result(s)}}
  %d = tile.mma [%a, %a], %b, [%c] : [!tile.frag<16x64xf16, operand_a>, !tile.frag<16x64xf16, operand_a>], !b, [!tile.frag<16x32xf32>] -> !tile.frag<16x32xf32>
}
