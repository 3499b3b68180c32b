// The whole pipeline on a persistent warp-specialised GEMM, D = A * B^T:
// 128x256 tiles, K in steps of 64, one loading thread, two math warpgroups.
// RUN: llmc-opt %s --tile-to-nvvm | FileCheck %s

!a_map = !tile.tensor_map<128x64xbf16, swizzle = 128>
!b_map = !tile.tensor_map<256x64xbf16, swizzle = 128>
!d_map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!a_tile = !tile.smem<128x64xbf16, swizzle = 128>
!a_rows = !tile.smem<64x64xbf16, swizzle = 128, slab_rows = 128>
!b_tile = !tile.smem<256x64xbf16, swizzle = 128>
!staging = !tile.smem<64x64xbf16, swizzle = 128>
!ring = !tile.ring<4, !a_tile, !b_tile>
!acc = !tile.acc<64x256xf32>

// CHECK: gpu.module @gemm
// CHECK: llvm.func @gemm
tile.kernel @gemm(%a: !a_map, %b: !b_map, %d: !d_map,
                  %rows: i32, %columns: i32, %steps: i32)
    threads(384) min_blocks(1) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ab = tile.ring : !ring
  %out = tile.shared per_warpgroup buffers(2) : !staging
  %tiles = arith.muli %rows, %columns : i32
  %first = tile.program_id x
  %stride = tile.num_programs x

  tile.role @load warps(1) regs(40) elected {
    %bm = arith.constant 128 : i32
    %bn = arith.constant 256 : i32
    %bk = arith.constant 64 : i32
    scf.for %t = %first to %tiles step %stride : i32 {
      %m, %n = tile.raster %t of (%rows, %columns) group(16)
      %m0 = arith.muli %m, %bm : i32
      %n0 = arith.muli %n, %bn : i32
      scf.for %k = %zero to %steps step %one : i32 {
        %k0 = arith.muli %k, %bk : i32
        tile.produce %ab : !ring as (%sa, %sb) {
          tile.tma_load %a[%m0, %k0] -> %sa : !a_map -> !a_tile
          tile.tma_load %b[%n0, %k0] -> %sb : !b_map -> !b_tile
        }
      }
    }
  }

  tile.role @math warps(8) regs(232) {
    %bm = arith.constant 128 : i32
    %bn = arith.constant 256 : i32
    %c64 = arith.constant 64 : i32
    %g = tile.warpgroup_index
    %mine = arith.muli %g, %c64 : i32
    scf.for %t = %first to %tiles step %stride : i32 {
      %m, %n = tile.raster %t of (%rows, %columns) group(16)
      %m0 = arith.muli %m, %bm : i32
      %row = arith.addi %m0, %mine : i32
      %n0 = arith.muli %n, %bn : i32
      %empty = tile.zero_acc : !acc
      %sum = scf.for %k = %zero to %steps step %one iter_args(%c = %empty)
          -> (!acc) : i32 {
        %next = tile.consume %ab keep(1) : !ring as (%sa, %sb) -> (!acc) {
          %ma = tile.warpgroup_slice %sa step(64) : !a_tile -> !a_rows
          %c1 = tile.wgmma %ma, %sb, %c : !a_rows, !b_tile, !acc -> !acc
          %c2 = tile.wgmma_wait %c1 pending(1) : !acc -> !acc
          tile.yield %c2 : !acc
        }
        scf.yield %next : !acc
      }
      %done = tile.wgmma_wait %sum : !acc -> !tile.frag<64x256xf32>
      tile.release %ab : !ring
      %half = tile.convert %done : !tile.frag<64x256xf32>
        -> !tile.frag<64x256xbf16>
      tile.store_tma %half, %out -> %d[%row, %n0] : !tile.frag<64x256xbf16>,
        !staging -> !d_map
    }
  }
}
