// RUN: llmc-opt %s | llmc-opt | FileCheck %s

!a = !tile.smem<64x64xbf16, swizzle = 128>
!b = !tile.smem<256x64xbf16, swizzle = 128>
!v = !tile.smem<64x128xbf16, swizzle = 128>
!p = !tile.frag<64x64xbf16, operand_a>

// CHECK-LABEL: tile.kernel @wgmma
tile.kernel @wgmma(%f: f32) threads(128) {
  %a = tile.shared : !a
  %b = tile.shared : !b
  %v = tile.shared : !v
  // CHECK: %[[Z:.*]] = tile.zero_acc : <64x256xf32>
  %z = tile.zero_acc : !tile.acc<64x256xf32>
  // CHECK: %[[C:.*]] = tile.wgmma %{{.*}}, %{{.*}}, %[[Z]] :
  %c = tile.wgmma %a, %b, %z : !a, !b, !tile.acc<64x256xf32> -> !tile.acc<64x256xf32>
  // CHECK: tile.wgmma_wait %[[C]] pending(1) : !tile.acc<64x256xf32> -> !tile.acc<64x256xf32>
  %c1 = tile.wgmma_wait %c pending(1) : !tile.acc<64x256xf32> -> !tile.acc<64x256xf32>
  // CHECK: tile.wgmma_wait %{{.*}} : !tile.acc<64x256xf32> -> !tile.frag<64x256xf32>
  %c2 = tile.wgmma_wait %c1 : !tile.acc<64x256xf32> -> !tile.frag<64x256xf32>
  // CHECK: %[[P:.*]] = tile.load_matrix %{{.*}} : <64x64xbf16, swizzle = 128> -> <64x64xbf16, operand_a>
  %p = tile.load_matrix %a : !a -> !p
  %o = tile.fill %f : f32 -> !tile.frag<64x128xf32>
  // CHECK: tile.wgmma %[[P]], %{{.*}}, %{{.*}} transpose_b :
  %o1 = tile.wgmma %p, %v, %o transpose_b : !p, !v, !tile.frag<64x128xf32> -> !tile.acc<64x128xf32>
}

// CHECK-LABEL: tile.kernel @mma
tile.kernel @mma(%f: f32) threads(32) {
  %s = tile.shared : !tile.smem<16x64xf16, swizzle = 128>
  %b = tile.shared : !tile.smem<32x64xf16, swizzle = 128>
  %a = tile.load_matrix %s : !tile.smem<16x64xf16, swizzle = 128> -> !tile.frag<16x64xf16, operand_a>
  %c = tile.fill %f : f32 -> !tile.frag<16x32xf32>
  // CHECK: tile.mma[%{{.*}}], %{{.*}}, [%{{.*}}] : [!tile.frag<16x64xf16, operand_a>], <32x64xf16, swizzle = 128>, [!tile.frag<16x32xf32>] -> !tile.frag<16x32xf32>
  %d = tile.mma [%a], %b, [%c] : [!tile.frag<16x64xf16, operand_a>], !tile.smem<32x64xf16, swizzle = 128>, [!tile.frag<16x32xf32>] -> !tile.frag<16x32xf32>
  // CHECK: tile.mma[%{{.*}}, %{{.*}}], %{{.*}}, [%{{.*}}, %{{.*}}] :
  %e:2 = tile.mma [%a, %a], %b, [%d, %c] : [!tile.frag<16x64xf16, operand_a>, !tile.frag<16x64xf16, operand_a>], !tile.smem<32x64xf16, swizzle = 128>, [!tile.frag<16x32xf32>, !tile.frag<16x32xf32>] -> !tile.frag<16x32xf32>, !tile.frag<16x32xf32>
}
