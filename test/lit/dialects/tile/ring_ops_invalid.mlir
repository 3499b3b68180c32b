// RUN: llmc-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{a TMA box dimension is 1 to 256, got 512}}
tile.kernel @box(%a: !tile.tensor_map<512x64xbf16, swizzle = 128>) threads(32) {
}

// -----

// expected-error @+1 {{the innermost box dimension (256 bytes) is wider than the swizzle span of 128 bytes: use several boxes}}
tile.kernel @span(%a: !tile.tensor_map<64x128xbf16, swizzle = 128>) threads(32) {
}

// -----

// expected-error @+1 {{the innermost box dimension must be a multiple of 16 bytes, got 4 x 'bf16' = 8}}
tile.kernel @chunk(%a: !tile.tensor_map<64x4xbf16>) threads(32) {
}

// -----

tile.kernel @row() threads(32) {
  // expected-error @+1 {{a row of 96 bytes is not a multiple of the swizzle span of 128 bytes}}
  %t = tile.shared : !tile.smem<64x48xbf16, swizzle = 128>
}

// -----

!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!tile = !tile.smem<128x64xbf16, swizzle = 64>
tile.kernel @swizzle(%a: !map, %r: i32) threads(32) {
  %ring = tile.ring : !tile.ring<2, !tile>
  tile.role @load warps(1) elected {
    tile.produce %ring : !tile.ring<2, !tile> as (%t) {
      // expected-error @+1 {{the map swizzles 128 bytes, the tile 64}}
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
      // expected-error @+1 {{a tile of 96 rows is not filled by boxes of 64}}
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
      // expected-error @+1 {{has 3 coordinates for a map of rank 2}}
      tile.tma_load %a[%r, %r, %r] -> %t : !map -> !tile
    }
  }
}

// -----

!tile = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @slots() threads(32) {
  %ring = tile.ring : !tile.ring<2, !tile, !tile>
  // expected-error @+1 {{the ring has 2 slot(s), 1 named}}
  tile.consume %ring : !tile.ring<2, !tile, !tile> as (%t) {
  }
}

// -----

!tile = !tile.smem<64x64xbf16, swizzle = 128>
tile.kernel @slice() threads(32) {
  %t = tile.shared : !tile
  // expected-error @+1 {{starts at a multiple of 8 rows and of 64 columns}}
  %s = tile.slice %t[4, 0] : !tile -> !tile.smem<32x64xbf16, swizzle = 128, slab_rows = 64>
}
