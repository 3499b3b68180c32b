// RUN: llmc-opt %s --tile-verify-protocol

!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!a = !tile.smem<64x64xbf16, swizzle = 128>
!acc = !tile.acc<64x64xf32>
!ring = !tile.ring<2, !a>

// Tests that a late release is right where the multiply was waited for.
tile.kernel @late_release(%m: !map, %n: i32) threads(160) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ring = tile.ring : !ring
  tile.role @math warps(4) {
    %z = tile.zero_acc : !acc
    %s = scf.for %k = %zero to %n step %one iter_args(%c = %z) -> (!acc) : i32 {
      %r = tile.consume %ring keep(1) : !ring as (%t) -> (!acc) {
        %x = tile.wgmma %t, %t, %c : !a, !a, !acc -> !acc
        %w = tile.wgmma_wait %x pending(1) : !acc -> !acc
        tile.yield %w : !acc
      }
      scf.yield %r : !acc
    }
    %d = tile.wgmma_wait %s : !acc -> !tile.frag<64x64xf32>
    tile.release %ring : !ring
  }
  tile.role @load warps(1) elected {
    scf.for %k = %zero to %n step %one : i32 {
      tile.produce %ring : !ring as (%t) {
        tile.tma_load %m[%k, %k] -> %t : !map -> !a
      }
    }
  }
}
