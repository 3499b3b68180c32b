// RUN: llmc-opt %s -split-input-file --tile-assign-stage-phase --tile-assign-copy-groups -verify-diagnostics

!a = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2, !a>

// Tests that a stage is not filled while it is held.
tile.kernel @full(%x: !tile.ptr<bf16>, %n: i32) threads(128) {
  %zero = arith.constant 0 : i32
  %ring = tile.ring : !ring
  tile.produce %ring : !ring as (%t) {
    tile.copy_async %x[%zero, %zero] of(%n, 64) -> %t : !tile.ptr<bf16> -> !a
  }
  tile.produce %ring : !ring as (%t) {
    tile.copy_async %x[%zero, %zero] of(%n, 64) -> %t : !tile.ptr<bf16> -> !a
  }
  %t = tile.acquire %ring : !ring -> !a
  // expected-error @+1 {{expected a free stage, got 1 held and 1 filled; release one before}}
  tile.produce %ring : !ring as (%u) {
    tile.copy_async %x[%zero, %zero] of(%n, 64) -> %u : !tile.ptr<bf16> -> !a
  }
  tile.release %ring : !ring
}

// -----

!a = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2, !a>

// Tests that what is used was filled.
tile.kernel @empty(%x: !tile.ptr<bf16>, %n: i32) threads(128) {
  %zero = arith.constant 0 : i32
  %ring = tile.ring : !ring
  // expected-error @+1 {{expected a stage that a tile.produce filled before, got none}}
  %t = tile.acquire %ring : !ring -> !a
  tile.release %ring : !ring
  tile.produce %ring : !ring as (%u) {
    tile.copy_async %x[%zero, %zero] of(%n, 64) -> %u : !tile.ptr<bf16> -> !a
  }
}

// -----

!a = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2, !a>

// Tests that a loop fills as much as it uses.
tile.kernel @loop(%x: !tile.ptr<bf16>, %n: i32) threads(128) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ring = tile.ring : !ring
  tile.produce %ring : !ring as (%t) {
    tile.copy_async %x[%zero, %zero] of(%n, 64) -> %t : !tile.ptr<bf16> -> !a
  }
  // expected-error @+1 {{expected the same fillings on their way after an iteration as before it, got 0 and 1}}
  scf.for %k = %zero to %n step %one : i32 {
    %t = tile.acquire %ring : !ring -> !a
    tile.release %ring : !ring
  }
}

// -----

!a = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2, !a>

// Tests that both ways through a branch leave the same.
tile.kernel @branch(%x: !tile.ptr<bf16>, %n: i32) threads(128) {
  %zero = arith.constant 0 : i32
  %c = arith.cmpi ult, %zero, %n : i32
  %ring = tile.ring : !ring
  // expected-error @+1 {{expected the same fillings on their way after both branches, got 1 and 0}}
  scf.if %c {
    tile.produce %ring : !ring as (%t) {
      tile.copy_async %x[%zero, %zero] of(%n, 64) -> %t : !tile.ptr<bf16> -> !a
    }
  }
  tile.produce %ring : !ring as (%t) {
    tile.copy_async %x[%zero, %zero] of(%n, 64) -> %t : !tile.ptr<bf16> -> !a
  }
  %t = tile.acquire %ring : !ring -> !a
  tile.release %ring : !ring
}

// -----

!a = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2, !a>
!map = !tile.tensor_map<64x64xbf16, swizzle = 128>

// Tests that a block that fills its own rings does so with cp.async.
tile.kernel @tma(%m: !map, %n: i32) threads(128) {
  %ring = tile.ring : !ring
  tile.produce %ring : !ring as (%t) {
    // expected-error @+1 {{expected in a role: the threads of a kernel without roles copy with tile.copy_async}}
    tile.tma_load %m[%n, %n] -> %t : !map -> !a
  }
  %t = tile.acquire %ring : !ring -> !a
  tile.release %ring : !ring
}

// -----

!a = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2, !a>

// Tests that fillings come whole.
tile.kernel @parts(%x: !tile.ptr<bf16>, %n: i32) threads(128) {
  %ring = tile.ring : !ring
  // expected-error @+1 {{expected whole fillings in a kernel without roles}}
  tile.produce part(begin) %ring : !ring as (%t) {
    tile.copy_async %x[%n, %n] of(%n, 64) -> %t : !tile.ptr<bf16> -> !a
  }
  %t = tile.acquire %ring : !ring -> !a
  tile.release %ring : !ring
}
