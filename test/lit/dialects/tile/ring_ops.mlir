// RUN: llmc-opt %s | llmc-opt | FileCheck %s

!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!page = !tile.tensor_map<1x1x64x64xbf16, swizzle = 128>
!tile = !tile.smem<128x128xbf16, swizzle = 128>
!half = !tile.smem<64x128xbf16, swizzle = 128, slab_rows = 128>
!ring = !tile.ring<3, !tile>

// CHECK-LABEL: tile.kernel @rings
tile.kernel @rings(%a: !map, %kv: !page, %r: i32) threads(160) {
  // CHECK: %[[RING:.*]] = tile.ring : <3, !tile.smem<128x128xbf16, swizzle = 128>>
  %ring = tile.ring : !ring
  // CHECK: tile.shared per_warpgroup buffers(2) : <64x64xbf16, swizzle = 128>
  %out = tile.shared per_warpgroup buffers(2) : !tile.smem<64x64xbf16, swizzle = 128>
  tile.role @math warps(4) {
    // CHECK: tile.consume %[[RING]] keep(1) : {{.*}} as (%[[T:.*]]) {
    tile.consume %ring keep(1) : !ring as (%t) {
      // CHECK: tile.slice %[[T]][64, 0] : <128x128xbf16, swizzle = 128> -> <64x128xbf16, swizzle = 128, slab_rows = 128>
      %s = tile.slice %t[64, 0] : !tile -> !half
      // CHECK: tile.warpgroup_slice %[[T]] step(64)
      %w = tile.warpgroup_slice %t step(64) : !tile -> !half
    }
    // CHECK: tile.acquire %[[RING]]
    %t = tile.acquire %ring : !ring -> !tile
    // CHECK: tile.release %[[RING]] keep(1)
    tile.release %ring keep(1) : !ring
    // CHECK: tile.release %[[RING]] :
    tile.release %ring : !ring
    // CHECK: tile.proxy_fence
    tile.proxy_fence
  }
  tile.role @load warps(1) elected {
    // CHECK: tile.produce %[[RING]] : {{.*}} as (%[[T:.*]]) {
    // CHECK-NEXT: tile.tma_load %{{.*}}[%{{.*}}, %{{.*}}] -> %[[T]] cache(evict_first)
    tile.produce %ring : !ring as (%t) {
      tile.tma_load %a[%r, %r] -> %t cache(evict_first) : !map -> !tile
    }
    // CHECK: tile.produce part(begin) %[[RING]]
    tile.produce part(begin) %ring : !ring as (%t) {
      %low = tile.slice %t[0, 0] : !tile -> !half
      tile.tma_load %kv[%r, %r, %r, %r] -> %low : !page -> !half
    }
    // CHECK: tile.produce part(resume) %[[RING]]
    tile.produce part(resume) %ring : !ring as (%t) {
      %high = tile.slice %t[64, 0] : !tile -> !half
      tile.tma_load %kv[%r, %r, %r, %r] -> %high : !page -> !half
    }
  }
}

// CHECK-LABEL: tile.kernel @clamped
tile.kernel @clamped(%map: !tile.tensor_map<128x64xf32, swizzle = 0>, %i: i32) threads(288) {
  %t = tile.shared : !tile.smem<96x64xbf16, swizzle = 128>
  tile.role @math warps(8) {
    // CHECK: tile.warpgroup_slice %{{.*}} step(64) clamped
    %s = tile.warpgroup_slice %t step(64) clamped : !tile.smem<96x64xbf16, swizzle = 128>
      -> !tile.smem<64x64xbf16, swizzle = 128, slab_rows = 96>
  }
  tile.role @load warps(1) elected {
    // CHECK: tile.prefetch %{{.*}}[%{{.*}}, %{{.*}}] : <128x64xf32>
    tile.prefetch %map[%i, %i] : !tile.tensor_map<128x64xf32, swizzle = 0>
  }
}

// CHECK-LABEL: tile.kernel @copies
tile.kernel @copies(%x: !tile.ptr<bf16>, %r: i32, %rows: i32) threads(128) {
  // CHECK: %[[RING:.*]] = tile.ring : <2, !tile.smem<64x32xbf16, swizzle = 64>>
  %ring = tile.ring : !tile.ring<2, !tile.smem<64x32xbf16, swizzle = 64>>
  // CHECK: tile.produce %[[RING]] {meet} : {{.*}} as (%[[T:.*]]) {
  tile.produce %ring {meet} : !tile.ring<2, !tile.smem<64x32xbf16, swizzle = 64>> as (%t) {
    // CHECK: tile.copy_async %{{.*}}[%{{.*}}, %{{.*}}] of(%{{.*}}, 4096) -> %[[T]] : <bf16> -> <64x32xbf16, swizzle = 64>
    tile.copy_async %x[%r, %r] of(%rows, 4096) -> %t : !tile.ptr<bf16> -> !tile.smem<64x32xbf16, swizzle = 64>
  }
  // CHECK: tile.acquire %[[RING]] {pending = 0 : i32}
  %t = tile.acquire %ring {pending = 0 : i32} : !tile.ring<2, !tile.smem<64x32xbf16, swizzle = 64>> -> !tile.smem<64x32xbf16, swizzle = 64>
  tile.release %ring : !tile.ring<2, !tile.smem<64x32xbf16, swizzle = 64>>
}
