// RUN: llmc-opt %s --tile-allocate-shared-memory="max-bytes=101376" -verify-diagnostics

!a = !tile.smem<256x64xbf16, swizzle = 128>

// Tests the limit of a GPU that has less than Hopper.
// expected-error @+1 {{expected at most 101376 bytes of shared memory, those of a block, got 131072}}
tile.kernel @sum() threads(128) {
  // expected-note @+1 {{131072 bytes: ring}}
  %ring = tile.ring : !tile.ring<4, !a>
}
