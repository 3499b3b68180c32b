// Decode GEMM: weights are the 64-row operand, 16 tokens the columns; 48 rows
// per block; weights of the whole ring are requested before pdl_wait.
// RUN: llmc-opt %s --tile-to-nvvm | FileCheck %s

// CHECK: gpu.module @decode {{.*}}tile.pdl, tile.shared_memory = 215248 : i32, tile.threads = 160 : i32
// CHECK-COUNT-8: wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16
// CHECK: nvvm.elect.sync
// CHECK: nvvm.griddepcontrol launch_dependents
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} l2_cache_hint
// CHECK: nvvm.griddepcontrol wait
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
!w_map = !tile.tensor_map<48x64xbf16, swizzle = 128>
!x_map = !tile.tensor_map<16x64xbf16, swizzle = 128>
!w_tile = !tile.smem<48x128xbf16, swizzle = 128>
!w_rows = !tile.smem<64x128xbf16, swizzle = 128, slab_rows = 48>
!x_tile = !tile.smem<16x128xbf16, swizzle = 128>
!ring = !tile.ring<13, !w_tile, !x_tile>
!acc = !tile.acc<64x16xf32>
tile.kernel @decode(%w: !w_map, %x: !x_map, %y: !tile.ptr<bf16>, %tokens: i32, %n: i32, %steps: i32) threads(160) min_blocks(1) pdl {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c128 = arith.constant 128 : i32
  %c48 = arith.constant 48 : i32
  %wx = tile.ring : !ring
  %b = tile.program_id x
  %row = arith.muli %b, %c48 : i32
  tile.role @math warps(4) {
    %g = tile.warpgroup_index
    tile.pdl_wait
    %z = tile.zero_acc : !acc
    %sum = scf.for %k = %zero to %steps step %one iter_args(%c = %z) -> (!acc) : i32 {
      %next = tile.consume %wx keep(1) : !ring as (%sw, %sx) -> (!acc) {
        %mine = tile.warpgroup_slice %sw step(48) : !w_tile -> !w_rows
        %c1 = tile.wgmma %mine, %sx, %c : !w_rows, !x_tile, !acc -> !acc
        %c2 = tile.wgmma_wait %c1 pending(1) : !acc -> !acc
        tile.yield %c2 : !acc
      }
      scf.yield %next : !acc
    }
    %done = tile.wgmma_wait %sum : !acc -> !tile.frag<64x16xf32>
    tile.release %wx : !ring
    %end = arith.addi %row, %c48 : i32
    %last = arith.minui %end, %n : i32
    %gate, %up = tile.deinterleave rows %done : !tile.frag<64x16xf32> -> !tile.frag<32x16xf32, half_rows>, !tile.frag<32x16xf32, half_rows>
    %hr = arith.shrui %row, %one : i32
    %hl = arith.shrui %last, %one : i32
    %hn = arith.shrui %n, %one : i32
    tile.epilogue %gate, %up at(%hr, %zero) : !tile.frag<32x16xf32, half_rows>, !tile.frag<32x16xf32, half_rows> {
    ^bb0(%a: f32, %u: f32, %r: i32, %t: i32):
      %in = arith.cmpi ult, %r, %hl : i32
      %tin = arith.cmpi ult, %t, %tokens : i32
      %ok = arith.andi %in, %tin : i1
      %na = arith.negf %a : f32
      %e = math.exp %na : f32
      %fone = arith.constant 1.0 : f32
      %d = arith.addf %e, %fone : f32
      %q = arith.divf %a, %d fastmath<afn> : f32
      %m = arith.mulf %q, %u : f32
      %h = arith.truncf %m : f32 to bf16
      %o = arith.muli %t, %hn : i32
      %at = arith.addi %o, %r : i32
      tile.store %h, %y[%at] if %ok : bf16, !tile.ptr<bf16>
    }
  }
  tile.role @load warps(1) elected {
    tile.pdl_launch
    %stages = arith.constant 13 : i32
    %first = arith.minui %steps, %stages : i32
    scf.for %k = %zero to %first step %one : i32 {
      %k0 = arith.muli %k, %c128 : i32
      tile.produce part(begin) %wx : !ring as (%sw, %sx) {
        tile.tma_load %w[%row, %k0] -> %sw cache(evict_first) : !w_map -> !w_tile
      }
    }
    tile.pdl_wait
    scf.for %k = %zero to %first step %one : i32 {
      %k0 = arith.muli %k, %c128 : i32
      tile.produce part(resume) %wx : !ring as (%sw, %sx) {
        tile.tma_load %x[%zero, %k0] -> %sx : !x_map -> !x_tile
      }
    }
    scf.for %k = %first to %steps step %one : i32 {
      %k0 = arith.muli %k, %c128 : i32
      tile.produce %wx : !ring as (%sw, %sx) {
        tile.tma_load %w[%row, %k0] -> %sw cache(evict_first) : !w_map -> !w_tile
        tile.tma_load %x[%zero, %k0] -> %sx : !x_map -> !x_tile
      }
    }
  }
}
