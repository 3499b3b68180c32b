// Prefill attention of one head, FA3-like: one loading thread, two math
// warpgroups of 64 query rows, keys and values in blocks of 128.
// RUN: llmc-opt %s --tile-to-nvvm | FileCheck %s

// CHECK: gpu.module @attention
// CHECK: llvm.inline_asm has_side_effects {{.*}}m64n128k16.f32.bf16.bf16
!q_map = !tile.tensor_map<64x64xbf16, swizzle = 128>
!kv_map = !tile.tensor_map<128x64xbf16, swizzle = 128>
!q_tile = !tile.smem<128x128xbf16, swizzle = 128>
!q_rows = !tile.smem<64x128xbf16, swizzle = 128, slab_rows = 128>
!kv_tile = !tile.smem<128x128xbf16, swizzle = 128>
!q_ring = !tile.ring<1, !q_tile>
!kv_ring = !tile.ring<2, !kv_tile>
!s = !tile.frag<64x128xf32>
!rows = !tile.frag<64xf32, rows>
tile.kernel @attention(%q: !q_map, %k: !kv_map, %v: !kv_map, %o: !tile.ptr<bf16>, %n: i32, %scale: f32) threads(384) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %qs = tile.ring : !q_ring
  %ks = tile.ring : !kv_ring
  %vs = tile.ring : !kv_ring
  %b = tile.program_id x
  %c128 = arith.constant 128 : i32
  %q0 = arith.muli %b, %c128 : i32
  tile.role @load warps(1) regs(24) elected {
    tile.produce %qs : !q_ring as (%sq) {
      tile.tma_load %q[%q0, %zero] -> %sq : !q_map -> !q_tile
    }
    scf.for %j = %zero to %n step %one : i32 {
      %r = arith.muli %j, %c128 : i32
      tile.produce %ks : !kv_ring as (%sk) {
        tile.tma_load %k[%r, %zero] -> %sk : !kv_map -> !kv_tile
      }
      tile.produce %vs : !kv_ring as (%sv) {
        tile.tma_load %v[%r, %zero] -> %sv : !kv_map -> !kv_tile
      }
    }
  }
  tile.role @math warps(8) regs(240) {
    %g = tile.warpgroup_index
    %c64 = arith.constant 64 : i32
    %mine = arith.muli %g, %c64 : i32
    %row0 = arith.addi %q0, %mine : i32
    %f0 = arith.constant 0.0 : f32
    %ninf = arith.constant 0xFF800000 : f32
    %ofill = tile.fill %f0 : f32 -> !s
    %m0 = tile.fill %ninf : f32 -> !rows
    %l0 = tile.fill %f0 : f32 -> !rows
    %sq = tile.acquire %qs : !q_ring -> !q_tile
    %mq = tile.warpgroup_slice %sq step(64) : !q_tile -> !q_rows
    // S of the first block.
    %sk0 = tile.acquire %ks : !kv_ring -> !kv_tile
    %z = tile.zero_acc : !tile.acc<64x128xf32>
    %sacc = tile.wgmma %mq, %sk0, %z : !q_rows, !kv_tile, !tile.acc<64x128xf32> -> !tile.acc<64x128xf32>
    %s0 = tile.wgmma_wait %sacc : !tile.acc<64x128xf32> -> !s
    tile.release %ks : !kv_ring
    %mx0 = tile.row_reduce max %s0 : !s -> !rows
    %ms0 = tile.map %mx0 : !rows -> !rows {
    ^bb0(%x: f32, %row: i32, %col: i32):
      %y = arith.mulf %x, %scale : f32
      tile.yield %y : f32
    }
    %p0 = tile.map %s0, %ms0 at(%row0, %zero) : !s, !rows -> !s {
    ^bb0(%x: f32, %m: f32, %row: i32, %col: i32):
      %nm = arith.negf %m : f32
      %y = math.fma %x, %scale, %nm : f32
      %e = math.exp2 %y : f32
      tile.yield %e : f32
    }
    %sum0 = tile.row_reduce add %p0 partial : !s -> !rows
    %pa0 = tile.convert %p0 : !s -> !tile.frag<64x128xbf16, operand_a>
    %of, %mf, %lf, %pf = scf.for %j = %one to %n step %one iter_args(%oc = %ofill, %mc = %ms0, %lc = %sum0, %pc = %pa0) -> (!s, !rows, !rows, !tile.frag<64x128xbf16, operand_a>) : i32 {
      %sk = tile.acquire %ks : !kv_ring -> !kv_tile
      %zz = tile.zero_acc : !tile.acc<64x128xf32>
      %sa = tile.wgmma %mq, %sk, %zz : !q_rows, !kv_tile, !tile.acc<64x128xf32> -> !tile.acc<64x128xf32>
      %sv = tile.acquire %vs : !kv_ring -> !kv_tile
      %oa = tile.wgmma %pc, %sv, %oc transpose_b : !tile.frag<64x128xbf16, operand_a>, !kv_tile, !s -> !tile.acc<64x128xf32>
      %s1 = tile.wgmma_wait %sa pending(1) : !tile.acc<64x128xf32> -> !s
      tile.release %ks : !kv_ring
      %mx = tile.row_reduce max %s1 : !s -> !rows
      %mn, %corr = tile.map %mx, %mc : !rows, !rows -> !rows, !rows {
      ^bb0(%x: f32, %old: f32, %row: i32, %col: i32):
        %y = arith.mulf %x, %scale : f32
        %new = arith.maxnumf %y, %old : f32
        %d = arith.subf %old, %new : f32
        %e = math.exp2 %d : f32
        tile.yield %new, %e : f32, f32
      }
      %p = tile.map %s1, %mn at(%row0, %zero) : !s, !rows -> !s {
      ^bb0(%x: f32, %m: f32, %row: i32, %col: i32):
        %nm = arith.negf %m : f32
        %y = math.fma %x, %scale, %nm : f32
        %e = math.exp2 %y : f32
        tile.yield %e : f32
      }
      %sum = tile.row_reduce add %p partial : !s -> !rows
      %ln = tile.map %lc, %corr, %sum : !rows, !rows, !rows -> !rows {
      ^bb0(%x: f32, %c: f32, %a: f32, %row: i32, %col: i32):
        %y = math.fma %x, %c, %a : f32
        tile.yield %y : f32
      }
      tile.pin %sum : !rows
      %od = tile.wgmma_wait %oa : !tile.acc<64x128xf32> -> !s
      tile.release %vs : !kv_ring
      %os = tile.map %od, %corr : !s, !rows -> !s {
      ^bb0(%x: f32, %c: f32, %row: i32, %col: i32):
        %y = arith.mulf %x, %c : f32
        tile.yield %y : f32
      }
      %pa = tile.convert %p : !s -> !tile.frag<64x128xbf16, operand_a>
      scf.yield %os, %mn, %ln, %pa : !s, !rows, !rows, !tile.frag<64x128xbf16, operand_a>
    }
    tile.release %qs : !q_ring
    %sv = tile.acquire %vs : !kv_ring -> !kv_tile
    %oa = tile.wgmma %pf, %sv, %of transpose_b : !tile.frag<64x128xbf16, operand_a>, !kv_tile, !s -> !tile.acc<64x128xf32>
    %od = tile.wgmma_wait %oa : !tile.acc<64x128xf32> -> !s
    tile.release %vs : !kv_ring
    %lt = tile.row_reduce add %lf : !rows -> !rows
    tile.epilogue %od, %lt at(%row0, %zero) : !s, !rows {
    ^bb0(%x: vector<2xf32>, %l: f32, %row: i32, %col: i32):
      %lv = vector.broadcast %l : f32 to vector<2xf32>
      %y = arith.divf %x, %lv : vector<2xf32>
      %h = arith.truncf %y : vector<2xf32> to vector<2xbf16>
      %i = arith.muli %row, %c128 : i32
      %at = arith.addi %i, %col : i32
      tile.store %h, %o[%at] : vector<2xbf16>, !tile.ptr<bf16>
    }
  }
}
