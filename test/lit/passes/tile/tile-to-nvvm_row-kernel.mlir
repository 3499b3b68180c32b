// The whole pipeline on a row kernel: RMSNorm of f32 rows to bf16.
// RUN: llmc-opt %s --tile-to-nvvm | FileCheck %s

// CHECK: gpu.module @rms_norm
// CHECK: llvm.func @rms_norm
// CHECK: nvvm.griddepcontrol wait
// CHECK: llvm.load {{.*}} vector<4xf32>
// CHECK: nvvm.shfl.sync bfly
// CHECK: nvvm.barrier
// CHECK: llvm.nvvm.rsqrt.approx.f
// CHECK: llvm.load {{.*}} invariant
tile.kernel @rms_norm(%x: !tile.ptr<f32>, %w: !tile.ptr<bf16, constant>, %y: !tile.ptr<bf16>, %n: i32, %eps: f32) threads(256) pdl {
  %row = tile.program_id x
  %zero = arith.constant 0 : i32
  %f0 = arith.constant dense<0.0> : vector<4xf32>
  %base = arith.muli %row, %n : i32
  tile.pdl_wait
  %sums = tile.for_each %zero to %n vector(4) init(%f0 : vector<4xf32>) -> (vector<4xf32>) {
  ^bb0(%i: i32, %p: vector<4xf32>):
    %at = arith.addi %base, %i : i32
    %v = tile.load %x[%at] : !tile.ptr<f32> -> vector<4xf32>
    %sq = math.fma %v, %v, %p : vector<4xf32>
    tile.yield %sq : vector<4xf32>
  }
  %s = vector.reduction <add>, %sums : vector<4xf32> into f32
  %sum = tile.reduce add %s : f32 -> f32
  %nf = arith.sitofp %n : i32 to f32
  %mean = arith.divf %sum, %nf : f32
  %me = arith.addf %mean, %eps : f32
  %r = math.rsqrt %me : f32
  %rv = vector.broadcast %r : f32 to vector<4xf32>
  tile.for_each %zero to %n vector(4) {
  ^bb0(%i: i32):
    %at = arith.addi %base, %i : i32
    %v = tile.load %x[%at] : !tile.ptr<f32> -> vector<4xf32>
    %g = tile.load %w[%i] : !tile.ptr<bf16, constant> -> vector<4xbf16>
    %gf = arith.extf %g : vector<4xbf16> to vector<4xf32>
    %a = arith.mulf %v, %rv : vector<4xf32>
    %b = arith.mulf %a, %gf : vector<4xf32>
    %h = arith.truncf %b : vector<4xf32> to vector<4xbf16>
    tile.store %h, %y[%at] : vector<4xbf16>, !tile.ptr<bf16>
  }
  tile.pdl_launch
}
