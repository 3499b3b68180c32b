// RUN: llmc-opt %s -split-input-file --tile-allocate-shared-memory | FileCheck %s

// Tests that rings come first with their barriers behind them, that swizzled
// tiles are aligned to 1024 bytes, and that a tile per warpgroup is counted
// for each.
// CHECK-LABEL: tile.kernel @order
// CHECK-SAME: shared_memory(51328)
!a = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @order(%f: f32) threads(256) {
  // CHECK: tile.shared {offset = 50176 : i32} : <256xf32>
  %small = tile.shared : !tile.smem<256xf32>
  // CHECK: tile.ring {offset = 0 : i32}
  %ring = tile.ring : !tile.ring<2, !a>
  // CHECK: tile.shared per_warpgroup buffers(2) {offset = 17408 : i32}
  %out = tile.shared per_warpgroup buffers(2) : !a
  tile.role @math warps(8) {
    %x = tile.slice %out[0, 0] : !a -> !a
    // CHECK: tile.reduce add {{.*}} {offset = 51200 : i32}
    %s = tile.reduce add %f : f32 -> f32
    // CHECK: tile.reduce add {{.*}} scope(warp) :
    %w = tile.reduce add %f scope(warp) : f32 -> f32
  }
}

// -----

!w = !tile.smem<48x64xbf16, swizzle = 128>
!rows = !tile.smem<64x64xbf16, swizzle = 128, slab_rows = 48>
!ring = !tile.ring<2, !w>

// Tests that the end is padded where a row partition reads past its tile.
// CHECK-LABEL: tile.kernel @partition
// CHECK-SAME: shared_memory(14368)
tile.kernel @partition() threads(128) {
  %ring = tile.ring : !ring
  tile.role @math warps(4) {
    %t = tile.acquire %ring : !ring -> !w
    %mine = tile.warpgroup_slice %t step(48) : !w -> !rows
  }
}
