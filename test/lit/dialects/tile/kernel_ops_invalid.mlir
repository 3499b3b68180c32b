// RUN: llmc-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{threads must be a multiple of 32 up to 1024, got 100}}
tile.kernel @threads() threads(100) {
}

// -----

// expected-error @+1 {{argument #0 must be a !tile.ptr, !tile.tensor_map, i32, i64 or f32, got 'f16'}}
tile.kernel @argument(%x: f16) threads(32) {
}

// -----

// expected-error @+1 {{has 256 threads but its roles take 12 warps = 384 threads}}
tile.kernel @sum() threads(256) {
  tile.role @load warps(1) regs(40) elected {
  }
  tile.role @math warps(8) regs(232) {
  }
}

// -----

// expected-error @+1 {{register budgets need 128 x 56 + 256 x 240 = 68608 registers, an SM has 65536}}
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
  // expected-error @+1 {{has no register budget while another role of the kernel has one}}
  tile.role @math warps(8) {
  }
}

// -----

tile.kernel @step() threads(128) {
  // expected-error @+1 {{regs must be a multiple of 8 from 24 to 256, got 41}}
  tile.role @load warps(1) regs(41) elected {
  }
}

// -----

tile.kernel @election() threads(128) {
  // expected-error @+1 {{elected runs in one thread, so the role has 1 warp, got 4}}
  tile.role @load warps(4) elected {
  }
}

// -----

tile.kernel @last() threads(128) {
  tile.role @math warps(4) {
  }
  // expected-error @+1 {{comes after a tile.role; roles end a kernel}}
  tile.pdl_launch
}

// -----

tile.kernel @alone() threads(32) {
  tile.role @load warps(1) elected {
    // expected-error @+1 {{needs whole warps, but the role is elected: one thread}}
    tile.barrier
  }
}
