// llmc-opt writes PTX with no CUDA installed: the NVVM target is registered.
// RUN: llmc-opt --gpu-module-to-binary=format=isa %s | FileCheck %s

// CHECK: gpu.binary @kernels
// CHECK-SAME: .target sm_90a
gpu.module @kernels [#nvvm.target<chip = "sm_90a", features = "+ptx83">] {
  llvm.func @store(%out: !llvm.ptr) attributes {nvvm.kernel} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    llvm.store %tid, %out : i32, !llvm.ptr
    llvm.return
  }
}
