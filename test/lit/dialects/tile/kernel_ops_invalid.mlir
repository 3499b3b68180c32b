// RUN: llmc-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{'tile.kernel' op expected threads in multiples of 32 up to 1024, got 100}}
tile.kernel @threads() threads(100) {
}

// -----

// expected-error @+1 {{expected argument #0 to be a !tile.ptr, !tile.tensor_map, i32, i64 or f32, got 'f16'}}
tile.kernel @argument(%x: f16) threads(32) {
}

// -----

// expected-error @+1 {{expected at most 232448 bytes of shared memory, got 300000}}
tile.kernel @shared() threads(32) shared_memory(300000) {
}

// -----

// expected-error @+1 {{expected threads(384), the 12 warps of its roles, got 256}}
tile.kernel @sum() threads(256) {
  tile.role @load warps(1) regs(40) elected {
  }
  tile.role @math warps(8) regs(232) {
  }
}

// -----

// expected-error @+1 {{expected register budgets of at most 65536 registers, those of an SM, got 128 x 56 + 256 x 240 = 68608; lower regs}}
tile.kernel @registers() threads(384) {
  tile.role @load warps(1) regs(56) elected {
  }
  tile.role @math warps(8) regs(240) {
  }
}

// -----

tile.kernel @budget() threads(384) {
  tile.role @load warps(1) regs(40) elected {
  }
  // expected-error @+1 {{expected a register budget (regs), as another role of the kernel has one; name it on all roles or on none}}
  tile.role @math warps(8) {
  }
}

// -----

tile.kernel @step() threads(128) {
  // expected-error @+1 {{'tile.role' op expected regs in multiples of 8 from 24 to 256, got 41}}
  tile.role @load warps(1) regs(41) elected {
  }
}

// -----

tile.kernel @warps() threads(128) {
  // expected-error @+1 {{expected 1 to 32 warps, got 0}}
  tile.role @load warps(0) {
  }
  tile.role @math warps(4) {
  }
}

// -----

tile.kernel @election() threads(128) {
  // expected-error @+1 {{expected 1 warp in an elected role, which runs in one thread, got 4}}
  tile.role @load warps(4) elected {
  }
}

// -----

tile.kernel @last() threads(128) {
  tile.role @math warps(4) {
  }
  // expected-error @+1 {{expected before the first tile.role: roles end a kernel}}
  tile.pdl_launch
}

// -----

tile.kernel @alone() threads(32) {
  tile.role @load warps(1) elected {
    // expected-error @+1 {{expected in a role of whole warps, got one that is elected, which runs in one thread}}
    tile.barrier
  }
}

// -----

func.func @outside() {
  // expected-error @+1 {{'tile.role' op expects parent op 'tile.kernel'}}
  tile.role @load warps(1) {
  }
  return
}

// -----

tile.kernel @raster(%i: i32) threads(32) {
  // expected-error @+1 {{'tile.raster' op expected a positive group, got 0}}
  %m, %n = tile.raster %i of (%i, %i) group(0)
}

// -----

// expected-error @+1 {{expected clusters of 2 blocks or none, got 4}}
tile.kernel @four() threads(128) cluster(4) {
}

// -----

tile.kernel @alone() threads(128) {
  // expected-error @+1 {{expected a kernel with cluster(2)}}
  %r = tile.cluster_rank
}
