// RUN: llmc-opt %s "--tile-to-nvvm=chip=sm_90a features=+ptx86" | FileCheck %s

// Tests that 8-bit floats are bytes in memory and registers, that pairs convert
// in one saturating instruction with the first element in the low byte, and
// that a scalar takes one lane of a pair.
// CHECK-LABEL: llvm.func @narrow
// CHECK-SAME: %[[X:.*]]: !llvm.ptr<1>, %[[Q:.*]]: !llvm.ptr<1>
tile.kernel @narrow(%x: !tile.ptr<f32>, %q: !tile.ptr<f8E4M3FN>) threads(32) {
  %i = tile.thread_index
  %v = tile.load %x[%i] : !tile.ptr<f32> -> vector<2xf32>
  // CHECK: %[[LOW:.*]] = llvm.extractelement %[[V:.*]][{{.*}}] : vector<2xf32>
  // CHECK: %[[HIGH:.*]] = llvm.extractelement %[[V]][{{.*}}] : vector<2xf32>
  // CHECK: nvvm.convert.f32x2.to.f8x2 %[[HIGH]], %[[LOW]] {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : vector<2xi8>(f8E4M3FN)
  %n = tile.narrow %v : vector<2xf32> -> vector<2xf8E4M3FN>
  // CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 2 : i64} : vector<2xi8>, !llvm.ptr<1>
  tile.store %n, %q[%i] : vector<2xf8E4M3FN>, !tile.ptr<f8E4M3FN>
}

// A load under a condition gives zeros, as bytes, where it does not hold.
// CHECK-LABEL: llvm.func @widen
tile.kernel @widen(%q: !tile.ptr<f8E5M2>, %x: !tile.ptr<f32>, %n: i32) threads(32) {
  %i = tile.thread_index
  %p = arith.cmpi ult, %i, %n : i32
  // CHECK: llvm.load %{{.*}} {alignment = 1 : i64} : !llvm.ptr<1> -> i8
  %c = tile.load %q[%i] if %p : !tile.ptr<f8E5M2> -> f8E5M2
  // CHECK: nvvm.convert.f8x2.to.f16x2 %{{.*}} : vector<2xi8>(f8E5M2) -> vector<2xf16>
  // CHECK: llvm.fpext %{{.*}} : f16 to f32
  %w = tile.widen %c : f8E5M2 -> f32
  tile.store %w, %x[%i] : f32, !tile.ptr<f32>
}
