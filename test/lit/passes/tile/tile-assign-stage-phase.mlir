// RUN: llmc-opt %s -split-input-file --tile-assign-stage-phase | FileCheck %s

!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!a = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<3, !a>

// Tests that stage and phase go round the loop, that the producer starts with
// the phase flipped, and that counts and bytes are filled.
// CHECK-LABEL: tile.kernel @loop
// CHECK: %[[RING:.*]] = tile.ring {empty_arrivals = 4 : i32, full_arrivals = 1 : i32}
tile.kernel @loop(%m: !map, %n: i32) threads(160) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ring = tile.ring : !ring
  // CHECK: tile.role @math
  tile.role @math warps(4) {
    // CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %c0{{.*}}, %[[P:.*]] = %c0{{.*}})
    scf.for %k = %zero to %n step %one : i32 {
      // CHECK: tile.acquire %[[RING]] stage(%[[S]], %[[P]])
      // CHECK: %[[FLIP:.*]] = arith.xori %[[P]]
      // CHECK: %[[UP:.*]] = arith.addi %[[S]]
      // CHECK: %[[WRAP:.*]] = arith.cmpi eq, %[[UP]], %c3
      // CHECK: %[[S1:.*]] = arith.select %[[WRAP]], %c0{{.*}}, %[[UP]]
      // CHECK: %[[P1:.*]] = arith.select %[[WRAP]], %[[FLIP]], %[[P]]
      // CHECK: tile.release %[[RING]] stage(%[[S]])
      // CHECK: scf.yield %[[S1]], %[[P1]]
      tile.consume %ring : !ring as (%t) {
      }
    }
  }
  // CHECK: tile.role @load
  tile.role @load warps(1) elected {
    // CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %c0{{.*}}, %[[P:.*]] = %c1{{.*}})
    // CHECK: tile.produce %[[RING]] stage(%[[S]], %[[P]]) {bytes = 8192 : i32}
    scf.for %k = %zero to %n step %one : i32 {
      tile.produce %ring : !ring as (%t) {
        tile.tma_load %m[%k, %k] -> %t : !map -> !a
      }
    }
  }
}

// -----

!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!a = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<3, !a, !a>

// Tests that a begun filling arms the bytes of both parts and that both parts
// walk the same stages.
// CHECK-LABEL: tile.kernel @split
tile.kernel @split(%m: !map, %n: i32) threads(160) {
  %ring = tile.ring : !ring
  tile.role @math warps(4) {
    tile.consume %ring : !ring as (%t, %u) {
    }
  }
  tile.role @load warps(1) elected {
    // CHECK: tile.produce part(begin) {{.*}} stage(%[[S:.*]], %{{.*}}) {bytes = 16384 : i32}
    tile.produce part(begin) %ring : !ring as (%t, %u) {
      tile.tma_load %m[%n, %n] -> %t : !map -> !a
    }
    // CHECK: tile.produce part(resume)
    tile.produce part(resume) %ring : !ring as (%t, %u) {
      tile.tma_load %m[%n, %n] -> %u : !map -> !a
    }
  }
}
