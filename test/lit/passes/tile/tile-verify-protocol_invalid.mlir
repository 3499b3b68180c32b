// RUN: llmc-opt %s -split-input-file --tile-verify-protocol -verify-diagnostics

!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!a = !tile.smem<64x64xbf16, swizzle = 128>
!acc = !tile.acc<64x64xf32>
!ring = !tile.ring<2, !a>

// Tests that a stage is not released under a multiply in flight.
tile.kernel @early_release(%m: !map, %n: i32) threads(160) {
  %ring = tile.ring : !ring
  tile.role @math warps(4) {
    %z = tile.zero_acc : !acc
    // expected-error @+1 {{releases a stage that a multiply in flight may still read}}
    %r = tile.consume %ring : !ring as (%t) -> (!acc) {
      // expected-note @+1 {{the multiply}}
      %x = tile.wgmma %t, %t, %z : !a, !a, !acc -> !acc
      %w = tile.wgmma_wait %x pending(1) : !acc -> !acc
      tile.yield %w : !acc
    }
  }
  tile.role @load warps(1) elected {
    tile.produce %ring : !ring as (%t) {
      tile.tma_load %m[%n, %n] -> %t : !map -> !a
    }
  }
}

// -----

!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!a = !tile.smem<64x64xbf16, swizzle = 128>
!acc = !tile.acc<64x64xf32>
!ring = !tile.ring<2, !a>

// Tests that a tile is not used after its release.
tile.kernel @use_after_release(%m: !map, %n: i32) threads(160) {
  %ring = tile.ring : !ring
  tile.role @math warps(4) {
    %z = tile.zero_acc : !acc
    %t = tile.acquire %ring : !ring -> !a
    tile.release %ring : !ring
    // expected-error @+1 {{uses a stage of a ring after its release}}
    %x = tile.wgmma %t, %t, %z : !a, !a, !acc -> !acc
  }
  tile.role @load warps(1) elected {
    tile.produce %ring : !ring as (%t) {
      tile.tma_load %m[%n, %n] -> %t : !map -> !a
    }
  }
}

// -----

!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!a = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2, !a>

// Tests that roles that take rings in opposite orders are found to deadlock:
// the loader fills x three times before y, but x has two stages.
// expected-error @+1 {{deadlocks: no role can go on}}
tile.kernel @deadlock(%m: !map, %n: i32) threads(160) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %three = arith.constant 3 : i32
  %x = tile.ring : !ring
  %y = tile.ring : !ring
  tile.role @math warps(4) {
    // expected-note @+1 {{role @math waits for a full stage after 0 filling(s), 0 release(s) by @math}}
    tile.consume %y : !ring as (%t) {
    }
    scf.for %k = %zero to %three step %one : i32 {
      tile.consume %x : !ring as (%t) {
      }
    }
  }
  tile.role @load warps(1) elected {
    scf.for %k = %zero to %three step %one : i32 {
      // expected-note @+1 {{role @load waits for a free stage after 2 filling(s), 0 release(s) by @math}}
      tile.produce %x : !ring as (%t) {
        tile.tma_load %m[%n, %n] -> %t : !map -> !a
      }
    }
    tile.produce %y : !ring as (%t) {
      tile.tma_load %m[%n, %n] -> %t : !map -> !a
    }
  }
}

// -----

!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!a = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<4, !a>

// Tests that fillings and uses are counted.
tile.kernel @count(%m: !map, %n: i32) threads(160) {
  // expected-error @+1 {{expected role @math to use the 2 stage(s) that are produced, got 1 use(s)}}
  %x = tile.ring : !ring
  tile.role @math warps(4) {
    tile.consume %x : !ring as (%t) {
    }
  }
  tile.role @load warps(1) elected {
    tile.produce %x : !ring as (%t) {
      tile.tma_load %m[%n, %n] -> %t : !map -> !a
    }
    tile.produce %x : !ring as (%t) {
      tile.tma_load %m[%n, %n] -> %t : !map -> !a
    }
  }
}

// -----

!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!a = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<4, !a, !a>

// Tests that a filling brings every byte of the stage.
tile.kernel @bytes(%m: !map, %n: i32) threads(160) {
  %x = tile.ring : !ring
  tile.role @math warps(4) {
    tile.consume %x : !ring as (%t, %u) {
    }
  }
  tile.role @load warps(1) elected {
    // expected-error @+1 {{expected loads of the 16384 bytes of a stage, got 8192}}
    tile.produce %x : !ring as (%t, %u) {
      tile.tma_load %m[%n, %n] -> %t : !map -> !a
    }
  }
}

// -----

// Tests that a kernel launched early waits before it writes.
tile.kernel @no_wait(%y: !tile.ptr<f32>, %i: i32, %f: f32) threads(32) pdl {
  // expected-error @+1 {{expected behind a tile.pdl_wait, as it touches memory of other kernels; got none in the kernel}}
  tile.store %f, %y[%i] : f32, !tile.ptr<f32>
}
