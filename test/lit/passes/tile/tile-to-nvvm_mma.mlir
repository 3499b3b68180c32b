// The portable path: ldmatrix and mma.sync, no wgmma.
// RUN: llmc-opt %s --tile-to-nvvm="chip=sm_90 features=+ptx80" | FileCheck %s

!a = !tile.smem<16x64xbf16, swizzle = 128>
!b = !tile.smem<32x64xbf16, swizzle = 128>
!v = !tile.smem<64x32xbf16, swizzle = 64>

// Tests that N x K tiles are read as they lie and K x N tiles transposed.
// CHECK-LABEL: gpu.module @mma [#nvvm.target<O = 3, chip = "sm_90", features = "+ptx80">]
// CHECK-COUNT-4: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>
// CHECK-COUNT-16: nvvm.mma.sync
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>
// CHECK-COUNT-16: nvvm.mma.sync
tile.kernel @mma(%y: !tile.ptr<f32>, %f: f32, %x: !tile.ptr<bf16>) threads(32) {
  %sa = tile.shared : !a
  %sb = tile.shared : !b
  %sv = tile.shared : !v
  %zero = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %t = tile.thread_index
  %row = tile.load %x[%t] : !tile.ptr<bf16> -> vector<8xbf16>
  tile.store %row, %sa[%zero, %zero] : vector<8xbf16>, !a
  tile.barrier
  %a = tile.load_matrix %sa : !a -> !tile.frag<16x64xbf16, operand_a>
  %c = tile.fill %f : f32 -> !tile.frag<16x32xf32>
  %d = tile.mma [%a], %sb, [%c] : [!tile.frag<16x64xbf16, operand_a>], !b, [!tile.frag<16x32xf32>] -> !tile.frag<16x32xf32>
  %e = tile.mma [%a], %sv, [%d] transpose_b : [!tile.frag<16x64xbf16, operand_a>], !v, [!tile.frag<16x32xf32>] -> !tile.frag<16x32xf32>
  tile.epilogue %e at(%zero, %zero) : !tile.frag<16x32xf32> {
  ^bb0(%v: vector<2xf32>, %r: i32, %col: i32):
    %i = arith.muli %r, %c32 : i32
    %at = arith.addi %i, %col : i32
    tile.store %v, %y[%at] : vector<2xf32>, !tile.ptr<f32>
  }
}
