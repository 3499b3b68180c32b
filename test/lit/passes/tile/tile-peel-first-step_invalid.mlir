// RUN: llmc-opt %s --tile-peel-first-step -verify-diagnostics

!a = !tile.smem<64x64xbf16, swizzle = 128>
!acc = !tile.acc<64x64xf32>

tile.kernel @never(%n: i32) threads(128) {
  %a = tile.shared : !a
  %lower = arith.constant 2 : i32
  %step = arith.constant 1 : i32
  %zero = tile.zero_acc : !acc
  // expected-error @+1 {{'scf.for' op expected one iteration or more, as the loop starts from tile.zero_acc, got bounds 2 to 2}}
  %sum = scf.for %k = %lower to %lower step %step iter_args(%c = %zero) -> (!acc) : i32 {
    %next = tile.wgmma %a, %a, %c : !a, !a, !acc -> !acc
    scf.yield %next : !acc
  }
}
