// RUN: llmc-opt %s -split-input-file -verify-diagnostics

!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!tile = !tile.smem<128x64xbf16, swizzle = 64>
tile.kernel @swizzle(%a: !map, %r: i32) threads(32) {
  %ring = tile.ring : !tile.ring<2, !tile>
  tile.role @load warps(1) elected {
    tile.produce %ring : !tile.ring<2, !tile> as (%t) {
      // expected-error @+1 {{'tile.tma_load' op expected a tile with a swizzle of 128 bytes, as the map says, got 64}}
      tile.tma_load %a[%r, %r] -> %t : !map -> !tile
    }
  }
}

// -----

!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!tile = !tile.smem<96x64xbf16, swizzle = 128>
tile.kernel @rows(%a: !map, %r: i32) threads(32) {
  %ring = tile.ring : !tile.ring<2, !tile>
  tile.role @load warps(1) elected {
    tile.produce %ring : !tile.ring<2, !tile> as (%t) {
      // expected-error @+1 {{expected a tile of a multiple of 64 rows, those of a box, got 96}}
      tile.tma_load %a[%r, %r] -> %t : !map -> !tile
    }
  }
}

// -----

!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!tile = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @rank(%a: !map, %r: i32) threads(32) {
  %ring = tile.ring : !tile.ring<2, !tile>
  tile.role @load warps(1) elected {
    tile.produce %ring : !tile.ring<2, !tile> as (%t) {
      // expected-error @+1 {{expected 2 coordinates, one per dimension of the map, got 3}}
      tile.tma_load %a[%r, %r, %r] -> %t : !map -> !tile
    }
  }
}

// -----

!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!tile = !tile.smem<64x64xf16, swizzle = 128>
tile.kernel @element(%a: !map, %r: i32) threads(32) {
  %ring = tile.ring : !tile.ring<2, !tile>
  tile.role @load warps(1) elected {
    tile.produce %ring : !tile.ring<2, !tile> as (%t) {
      // expected-error @+1 {{expected a tile of 'bf16', as the map says, got 'f16'}}
      tile.tma_load %a[%r, %r] -> %t : !map -> !tile
    }
  }
}

// -----

!map = !tile.tensor_map<64xf32>
!tile = !tile.smem<64xf32>
tile.kernel @line(%a: !map, %r: i32) threads(32) {
  %ring = tile.ring : !tile.ring<2, !tile>
  tile.role @load warps(1) elected {
    tile.produce %ring : !tile.ring<2, !tile> as (%t) {
      // expected-error @+1 {{expected a tile of two dimensions, got '!tile.smem<64xf32>'}}
      tile.tma_load %a[%r] -> %t : !map -> !tile
    }
  }
}

// -----

!map = !tile.tensor_map<2x32x64xbf16, swizzle = 128>
!tile = !tile.smem<128x64xbf16, swizzle = 128>
tile.kernel @outer(%a: !map, %r: i32) threads(32) {
  %ring = tile.ring : !tile.ring<2, !tile>
  tile.role @load warps(1) elected {
    tile.produce %ring : !tile.ring<2, !tile> as (%t) {
      // expected-error @+1 {{expected a box that is 1 in its outer dimensions, or fills all 128 rows of the tile, got '!tile.tensor_map<2x32x64xbf16, swizzle = 128>'}}
      tile.tma_load %a[%r, %r, %r] -> %t : !map -> !tile
    }
  }
}

// -----

!map = !tile.tensor_map<64x32xbf16, swizzle = 128>
!tile = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @slab(%a: !map, %r: i32) threads(32) {
  %ring = tile.ring : !tile.ring<2, !tile>
  tile.role @load warps(1) elected {
    tile.produce %ring : !tile.ring<2, !tile> as (%t) {
      // expected-error @+1 {{expected boxes of 64 columns, one slab of the tile, got 32}}
      tile.tma_load %a[%r, %r] -> %t : !map -> !tile
    }
  }
}

// -----

!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!tile = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @unproduced(%a: !map, %r: i32) threads(32) {
  %t = tile.shared : !tile
  // expected-error @+1 {{'tile.tma_load' op expects parent op 'tile.produce'}}
  tile.tma_load %a[%r, %r] -> %t : !map -> !tile
}

// -----

!tile = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @names() threads(32) {
  %ring = tile.ring : !tile.ring<2, !tile, !tile>
  // expected-error @+1 {{expected a name for each of 2 slot(s) of the ring, got 1}}
  tile.consume %ring : !tile.ring<2, !tile, !tile> as (%t) {
  }
}

// -----

!tile = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2, !tile>
tile.kernel @results(%f: f32) threads(32) {
  %ring = tile.ring : !ring
  // expected-error @+1 {{'tile.consume' op expected a yield of the types of the results ('i32'), got ('f32')}}
  %x = tile.consume %ring : !ring as (%t) -> (i32) {
    tile.yield %f : f32
  }
}

// -----

!tile = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2, !tile>
tile.kernel @slots() threads(32) {
  %ring = tile.ring : !ring
  // expected-error @+1 {{'tile.acquire' op expected one tile for each of 1 slot(s) of the ring, got 2}}
  %t:2 = tile.acquire %ring : !ring -> !tile, !tile
}

// -----

!tile = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2, !tile>
tile.kernel @slot() threads(32) {
  %ring = tile.ring : !ring
  // expected-error @+1 {{expected tile #0 to have the type of its slot, '!tile.smem<64x64xbf16, swizzle = 128>', got '!tile.smem<64xf32>'}}
  %t = tile.acquire %ring : !ring -> !tile.smem<64xf32>
}

// -----

!tile = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<2, !tile>
tile.kernel @phase(%i: i32) threads(32) {
  %ring = tile.ring : !ring
  // expected-error @+1 {{'tile.produce' op expected a stage and a phase, got only a stage}}
  "tile.produce"(%ring, %i) <{operandSegmentSizes = array<i32: 1, 1, 0>}> ({
  ^bb0(%t: !tile):
    tile.yield
  }) : (!ring, i32) -> ()
}

// -----

!tile = !tile.smem<64x64xbf16, swizzle = 128>
func.func @loose() {
  // expected-error @+1 {{'tile.ring' op expects parent op 'tile.kernel'}}
  %ring = tile.ring : !tile.ring<2, !tile>
  return
}

// -----

!tile = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @slice() threads(32) {
  %t = tile.shared : !tile
  // expected-error @+1 {{'tile.slice' op expected offsets at a multiple of 8 rows and of 64 columns, got 4, 0}}
  %s = tile.slice %t[4, 0] : !tile -> !tile.smem<32x64xbf16, swizzle = 128, slab_rows = 64>
}

// -----

!tile = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @kept() threads(32) {
  %t = tile.shared : !tile
  // expected-error @+1 {{expected a result and offsets of the rank, element type and swizzle of '!tile.smem<64x64xbf16, swizzle = 128>', got '!tile.smem<32x64xf16, swizzle = 128, slab_rows = 64>' and 2 offset(s)}}
  %s = tile.slice %t[0, 0] : !tile -> !tile.smem<32x64xf16, swizzle = 128, slab_rows = 64>
}

// -----

!tile = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @outside() threads(32) {
  %t = tile.shared : !tile
  // expected-error @+1 {{expected a range inside [0, 64), got [40, 72)}}
  %s = tile.slice %t[40, 0] : !tile -> !tile.smem<32x64xbf16, swizzle = 128, slab_rows = 64>
}

// -----

tile.kernel @columns() threads(32) {
  %t = tile.shared : !tile.smem<64x64xf32>
  // expected-error @+1 {{expected whole rows of a tile without swizzle, '!tile.smem<64x64xf32>', got '!tile.smem<32x32xf32>'}}
  %s = tile.slice %t[0, 0] : !tile.smem<64x64xf32> -> !tile.smem<32x32xf32>
}

// -----

!tile = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @slab_rows() threads(32) {
  %t = tile.shared : !tile
  // expected-error @+1 {{expected slab_rows = 64, as the tile has, got 32}}
  %s = tile.slice %t[0, 0] : !tile -> !tile.smem<32x64xbf16, swizzle = 128>
}

// -----

!tile = !tile.smem<128x64xbf16, swizzle = 128>
tile.kernel @warpgroup_slice() threads(128) {
  %t = tile.shared : !tile
  // expected-error @+1 {{'tile.warpgroup_slice' op expected a result of the columns, element type and swizzle of '!tile.smem<128x64xbf16, swizzle = 128>', got '!tile.smem<64x64xf16, swizzle = 128, slab_rows = 128>'}}
  %s = tile.warpgroup_slice %t step(64) : !tile -> !tile.smem<64x64xf16, swizzle = 128, slab_rows = 128>
}

// -----

!tile = !tile.smem<128x64xbf16, swizzle = 128>
tile.kernel @stride() threads(128) {
  %t = tile.shared : !tile
  // expected-error @+1 {{expected a step of a positive multiple of 8, got 12}}
  %s = tile.warpgroup_slice %t step(12) : !tile -> !tile.smem<64x64xbf16, swizzle = 128, slab_rows = 128>
}

// -----

tile.kernel @clamped() threads(128) {
  %t = tile.shared : !tile.smem<48x64xbf16, swizzle = 128>
  // expected-error @+1 {{expected a tile of at least 64 rows for clamped slices, got 48}}
  %s = tile.warpgroup_slice %t step(64) clamped : !tile.smem<48x64xbf16, swizzle = 128>
    -> !tile.smem<64x64xbf16, swizzle = 128, slab_rows = 48>
}

// -----

tile.kernel @prefetch(%map: !tile.tensor_map<128x64xf32, swizzle = 0>, %i: i32) threads(128) {
  tile.role @math warps(4) {
    // expected-error @+1 {{expected an elected role: it is for one thread}}
    tile.prefetch %map[%i, %i] : !tile.tensor_map<128x64xf32, swizzle = 0>
  }
}

// -----

!ring = !tile.ring<2, !tile.smem<64x32xbf16, swizzle = 64>>
!tile = !tile.smem<64x32xbf16, swizzle = 64>
tile.kernel @copy_type(%x: !tile.ptr<f16>, %r: i32) threads(128) {
  %ring = tile.ring : !ring
  tile.produce %ring : !ring as (%t) {
    // expected-error @+1 {{expected a tile of 'f16', as the memory holds, got '!tile.smem<64x32xbf16, swizzle = 64>'}}
    tile.copy_async %x[%r, %r] of(%r, 64) -> %t : !tile.ptr<f16> -> !tile
  }
}

// -----

!ring = !tile.ring<2, !tile.smem<64x32xbf16, swizzle = 64>>
!tile = !tile.smem<64x32xbf16, swizzle = 64>
tile.kernel @copy_columns(%x: !tile.ptr<bf16>, %r: i32) threads(128) {
  %ring = tile.ring : !ring
  tile.produce %ring : !ring as (%t) {
    // expected-error @+1 {{expected columns of the tile and of the memory in steps of 8, which are 16 bytes, got 32 and 60}}
    tile.copy_async %x[%r, %r] of(%r, 60) -> %t : !tile.ptr<bf16> -> !tile
  }
}

// -----

!ring = !tile.ring<2, !tile.smem<64xbf16>>
!tile = !tile.smem<64xbf16>
tile.kernel @copy_rank(%x: !tile.ptr<bf16>, %r: i32) threads(128) {
  %ring = tile.ring : !ring
  tile.produce %ring : !ring as (%t) {
    // expected-error @+1 {{expected a tile of two dimensions, got '!tile.smem<64xbf16>'}}
    tile.copy_async %x[%r, %r] of(%r, 64) -> %t : !tile.ptr<bf16> -> !tile
  }
}

// -----

!ring = !tile.ring<2, !tile.smem<64x32xbf16, swizzle = 64>>
tile.kernel @copy_in_role(%x: !tile.ptr<bf16>, %r: i32) threads(128) {
  %ring = tile.ring : !ring
  tile.role @load warps(4) {
    tile.produce %ring : !ring as (%t) {
      // expected-error @+1 {{expected in a kernel without roles, whose threads consume what they copy}}
      tile.copy_async %x[%r, %r] of(%r, 64) -> %t : !tile.ptr<bf16> -> !tile.smem<64x32xbf16, swizzle = 64>
    }
  }
}
