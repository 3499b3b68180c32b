// RUN: llmc-opt %s --tile-assign-stage-phase --tile-assign-copy-groups | FileCheck %s

!a = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<3, !a>
!one = !tile.ring<1, !a>

// Tests the pipeline of a product: two fillings ahead, so one may be on its way
// when a stage is needed; the acquire is where all meet, so a filling waits for
// nobody.
// CHECK-LABEL: tile.kernel @ahead
tile.kernel @ahead(%x: !tile.ptr<bf16>, %n: i32) threads(128) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ring = tile.ring : !ring
  // CHECK: tile.produce %{{.*}} stage(%{{.*}}, %{{.*}}) {bytes = 0 : i32} :
  tile.produce %ring : !ring as (%t) {
    tile.copy_async %x[%zero, %zero] of(%n, 64) -> %t : !tile.ptr<bf16> -> !a
  }
  tile.produce %ring : !ring as (%t) {
    tile.copy_async %x[%one, %zero] of(%n, 64) -> %t : !tile.ptr<bf16> -> !a
  }
  // CHECK: scf.for
  scf.for %k = %zero to %n step %one : i32 {
    // CHECK: tile.acquire {{.*}} {pending = 1 : i32}
    %t = tile.acquire %ring : !ring -> !a
    // CHECK: tile.produce
    // CHECK-NOT: meet
    // CHECK-SAME: as
    tile.produce %ring : !ring as (%u) {
      tile.copy_async %x[%k, %zero] of(%n, 64) -> %u : !tile.ptr<bf16> -> !a
    }
    tile.release %ring : !ring
  }
}

// Tests two rings of one stage, as in attention: each acquire leaves the other
// ring's filling on its way, and each filling meets, as it follows a release.
// CHECK-LABEL: tile.kernel @turns
tile.kernel @turns(%x: !tile.ptr<bf16>, %n: i32) threads(128) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %keys = tile.ring : !one
  %values = tile.ring : !one
  tile.produce %keys : !one as (%t) {
    tile.copy_async %x[%zero, %zero] of(%n, 64) -> %t : !tile.ptr<bf16> -> !a
  }
  scf.for %k = %zero to %n step %one : i32 {
    // CHECK: tile.produce {{.*}}meet
    tile.produce %values : !one as (%t) {
      tile.copy_async %x[%k, %zero] of(%n, 64) -> %t : !tile.ptr<bf16> -> !a
    }
    // CHECK: tile.acquire {{.*}} {pending = 1 : i32}
    %s = tile.acquire %keys : !one -> !a
    tile.release %keys : !one
    // CHECK: tile.produce {{.*}}meet
    tile.produce %keys : !one as (%t) {
      tile.copy_async %x[%k, %zero] of(%n, 64) -> %t : !tile.ptr<bf16> -> !a
    }
    // CHECK: tile.acquire {{.*}} {pending = 1 : i32}
    %v = tile.acquire %values : !one -> !a
    tile.release %values : !one
  }
  // CHECK: tile.acquire {{.*}} {pending = 0 : i32}
  %s = tile.acquire %keys : !one -> !a
  tile.release %keys : !one
}

// Tests that what came with an earlier wait is not waited for again.
// CHECK-LABEL: tile.kernel @together
tile.kernel @together(%x: !tile.ptr<bf16>, %n: i32) threads(128) {
  %zero = arith.constant 0 : i32
  %keys = tile.ring : !one
  %values = tile.ring : !one
  tile.produce %keys : !one as (%t) {
    tile.copy_async %x[%zero, %zero] of(%n, 64) -> %t : !tile.ptr<bf16> -> !a
  }
  tile.produce %values : !one as (%t) {
    tile.copy_async %x[%zero, %zero] of(%n, 64) -> %t : !tile.ptr<bf16> -> !a
  }
  // CHECK: tile.acquire {{.*}} {pending = 0 : i32}
  %v = tile.acquire %values : !one -> !a
  // CHECK: tile.acquire
  // CHECK-NOT: pending
  %k = tile.acquire %keys : !one -> !a
  // CHECK: tile.release
  tile.release %values : !one
  tile.release %keys : !one
}
