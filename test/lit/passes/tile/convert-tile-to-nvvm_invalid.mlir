// RUN: llmc-opt %s -split-input-file --convert-tile-to-nvvm -verify-diagnostics

// Tests that a kernel whose memory is not allocated is refused.
// expected-error @+1 {{has no shared_memory yet; run tile-allocate-shared-memory}}
tile.kernel @unallocated() threads(32) {
}

// -----

// Tests that an accumulator that starts a loop is refused.
!a = !tile.smem<64x64xbf16, swizzle = 128>
!acc = !tile.acc<64x64xf32>
tile.kernel @unpeeled(%n: i32) threads(128) shared_memory(8192) {
  %a = tile.shared {offset = 0 : i32} : !a
  // expected-error @+2 {{starts something else than a multiply; run tile-peel-first-step}}
  // expected-error @+1 {{failed to legalize operation 'tile.zero_acc'}}
  %z = tile.zero_acc : !acc
  %s = scf.for %k = %n to %n step %n iter_args(%c = %z) -> (!acc) : i32 {
    scf.yield %c : !acc
  }
}
