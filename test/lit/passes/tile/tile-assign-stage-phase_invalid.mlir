// RUN: llmc-opt %s -split-input-file --tile-assign-stage-phase -verify-diagnostics

!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!a = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<3, !a>

// Tests that a loop must hold as many stages after a turn as before it.
tile.kernel @leak(%m: !map, %n: i32) threads(160) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ring = tile.ring : !ring
  tile.role @math warps(4) {
    // expected-error @+1 {{expected as many held stages of a ring after an iteration as before it, 0, got 1}}
    scf.for %k = %zero to %n step %one : i32 {
      tile.consume %ring keep(1) : !ring as (%t) {
      }
    }
    tile.release %ring : !ring
  }
  tile.role @load warps(1) elected {
    tile.produce %ring : !ring as (%t) {
      tile.tma_load %m[%n, %n] -> %t : !map -> !a
    }
  }
}

// -----

!a = !tile.smem<64x64xbf16, swizzle = 128>

// Tests that a ring has a producer.
tile.kernel @orphan() threads(128) {
  // expected-error @+1 {{expected one producing role and one consuming role or more, got 0 and 1}}
  %ring = tile.ring : !tile.ring<3, !a>
  tile.role @math warps(4) {
    tile.consume %ring : !tile.ring<3, !a> as (%t) {
    }
  }
}
