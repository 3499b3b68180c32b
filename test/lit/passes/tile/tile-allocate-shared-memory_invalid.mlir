// RUN: llmc-opt %s -split-input-file --tile-allocate-shared-memory -verify-diagnostics

!a = !tile.smem<256x64xbf16, swizzle = 128>

// Tests that the sum is checked and explained.
// expected-error @+1 {{expected at most 232448 bytes of shared memory, those of a block, got 262144}}
tile.kernel @sum() threads(128) {
  // expected-note @+1 {{262144 bytes: ring}}
  %ring = tile.ring : !tile.ring<8, !a>
}
