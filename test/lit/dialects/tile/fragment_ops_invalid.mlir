// RUN: llmc-opt %s -split-input-file -verify-diagnostics

!s = !tile.frag<64x64xf32>
tile.kernel @fill(%i: i32) threads(128) {
  // expected-error @+1 {{'tile.fill' op expected a scalar of the element type of '!tile.frag<64x64xf32>', got 'i32'}}
  %s = tile.fill %i : i32 -> !s
}

// -----

tile.kernel @none() threads(128) {
  // expected-error @+1 {{'tile.epilogue' op expected one fragment or more, got none}}
  "tile.epilogue"() <{operandSegmentSizes = array<i32: 0, 0, 0>}> ({
  ^bb0(%row: i32, %col: i32):
    tile.yield
  }) : () -> ()
}

// -----

tile.kernel @at(%x: f32, %r: i32) threads(128) {
  %s = tile.fill %x : f32 -> !tile.frag<64x64xf32>
  // expected-error @+1 {{expected a row and a column, got only a row}}
  "tile.epilogue"(%s, %r) <{operandSegmentSizes = array<i32: 1, 1, 0>}> ({
  ^bb0(%v: f32, %row: i32, %col: i32):
    tile.yield
  }) : (!tile.frag<64x64xf32>, i32) -> ()
}

// -----

tile.kernel @body(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  // expected-error @+1 {{expected a body that takes one value per fragment, the row and the column: 3 arguments, got 2}}
  tile.epilogue %x : !tile.frag<64x64xf32> {
  ^bb0(%a: f32, %row: i32):
    tile.yield
  }
}

// -----

tile.kernel @layouts(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  %y = tile.fill %f : f32 -> !tile.frag<64x128xf32>
  // expected-error @+1 {{'tile.map' op expected fragments of one shape and layout (or rows beside them), got '!tile.frag<64x128xf32>' and '!tile.frag<64x64xf32>'}}
  %z = tile.map %x, %y : !tile.frag<64x64xf32>, !tile.frag<64x128xf32> -> !tile.frag<64x64xf32> {
  ^bb0(%a: f32, %b: f32, %row: i32, %col: i32):
    tile.yield %a : f32
  }
}

// -----

tile.kernel @operand(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  %h = tile.convert %x : !tile.frag<64x64xf32> -> !tile.frag<64x64xbf16, operand_a>
  // expected-error @+1 {{expected fragments of layout accumulator, half_rows or rows, got '!tile.frag<64x64xbf16, operand_a>'}}
  tile.epilogue %h : !tile.frag<64x64xbf16, operand_a> {
  ^bb0(%a: bf16, %row: i32, %col: i32):
    tile.yield
  }
}

// -----

tile.kernel @heights(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  %m = tile.fill %f : f32 -> !tile.frag<16xf32, rows>
  // expected-error @+1 {{expected a rows fragment of as many rows as '!tile.frag<64x64xf32>', got '!tile.frag<16xf32, rows>'}}
  tile.epilogue %x, %m : !tile.frag<64x64xf32>, !tile.frag<16xf32, rows> {
  ^bb0(%a: f32, %b: f32, %row: i32, %col: i32):
    tile.yield
  }
}

// -----

tile.kernel @mixed(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  // expected-error @+1 {{expected all arguments of the body to be vectors of two, as earlier ones are, got 'f32' as #1}}
  tile.epilogue %x, %x : !tile.frag<64x64xf32>, !tile.frag<64x64xf32> {
  ^bb0(%a: vector<2xf32>, %b: f32, %row: i32, %col: i32):
    tile.yield
  }
}

// -----

tile.kernel @element(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  // expected-error @+1 {{expected body argument #0 to be 'f32' or a vector of two, got 'bf16'}}
  tile.epilogue %x : !tile.frag<64x64xf32> {
  ^bb0(%a: bf16, %row: i32, %col: i32):
    tile.yield
  }
}

// -----

tile.kernel @coordinates(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  // expected-error @+1 {{expected an i32 as the body's column, got 'i64'}}
  tile.epilogue %x : !tile.frag<64x64xf32> {
  ^bb0(%a: f32, %row: i32, %col: i64):
    tile.yield
  }
}

// -----

tile.kernel @yields(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  // expected-error @+1 {{expected a yield of 1 value(s), one per result, got 2}}
  %y = tile.map %x : !tile.frag<64x64xf32> -> !tile.frag<64x64xf32> {
  ^bb0(%a: f32, %row: i32, %col: i32):
    tile.yield %a, %a : f32, f32
  }
}

// -----

tile.kernel @yield(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  // expected-error @+1 {{expected a yield of 'vector<2xf32>' for '!tile.frag<64x64xf32>', got 'f32'}}
  %y = tile.map %x : !tile.frag<64x64xf32> -> !tile.frag<64x64xf32> {
  ^bb0(%a: vector<2xf32>, %row: i32, %col: i32):
    tile.yield %f : f32
  }
}

// -----

tile.kernel @result(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  // expected-error @+1 {{expected a result of the shape and layout of '!tile.frag<64x64xf32>', got '!tile.frag<64x32xf32>'}}
  %y = tile.map %x : !tile.frag<64x64xf32> -> !tile.frag<64x32xf32> {
  ^bb0(%a: f32, %row: i32, %col: i32):
    tile.yield %a : f32
  }
}

// -----

!s = !tile.frag<64x64xf32>
tile.kernel @reduced(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !s
  // expected-error @+1 {{'tile.row_reduce' op expected an accumulator or rows fragment and a rows fragment of as many rows, got '!tile.frag<64x64xf32>' to '!tile.frag<16xf32, rows>'}}
  %m = tile.row_reduce max %x : !s -> !tile.frag<16xf32, rows>
}

// -----

!s = !tile.frag<64x64xbf16>
tile.kernel @narrow(%f: f32) threads(128) {
  %h = arith.truncf %f : f32 to bf16
  %x = tile.fill %h : bf16 -> !s
  // expected-error @+1 {{expected f32 elements, got 'bf16'}}
  %m = tile.row_reduce max %x : !s -> !tile.frag<64xbf16, rows>
}

// -----

!s = !tile.frag<64x64xf32>
tile.kernel @kind(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !s
  // expected-error @+1 {{expected kind add, max or min, got argmax}}
  %m = tile.row_reduce argmax %x : !s -> !tile.frag<64xf32, rows>
}

// -----

!rows = !tile.frag<64xf32, rows>
tile.kernel @partial(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !rows
  // expected-error @+1 {{expected partial on an accumulator only, got '!tile.frag<64xf32, rows>'}}
  %m = tile.row_reduce max %x partial : !rows -> !rows
}

// -----

tile.kernel @shape(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  // expected-error @+1 {{'tile.convert' op expected a result of the operand's shape, got '!tile.frag<64x64xf32>' to '!tile.frag<64x32xbf16>'}}
  %h = tile.convert %x : !tile.frag<64x64xf32> -> !tile.frag<64x32xbf16>
}

// -----

tile.kernel @convert(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  %h = tile.convert %x : !tile.frag<64x64xf32> -> !tile.frag<64x64xbf16, operand_a>
  // expected-error @+1 {{expected the same layout, or accumulator to operand_a (others move data between threads), got operand_a to accumulator}}
  %y = tile.convert %h : !tile.frag<64x64xbf16, operand_a> -> !tile.frag<64x64xf32>
}

// -----

tile.kernel @halves(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  // expected-error @+1 {{'tile.deinterleave' op expected two results of one type, got '!tile.frag<64x32xf32>' and '!tile.frag<64x16xf32>'}}
  %a, %b = tile.deinterleave columns %x : !tile.frag<64x64xf32> -> !tile.frag<64x32xf32>, !tile.frag<64x16xf32>
}

// -----

tile.kernel @packed(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  %h = tile.convert %x : !tile.frag<64x64xf32> -> !tile.frag<64x64xbf16, operand_a>
  // expected-error @+1 {{expected a fragment of layout accumulator, got '!tile.frag<64x64xbf16, operand_a>'}}
  %a, %b = tile.deinterleave columns %h : !tile.frag<64x64xbf16, operand_a> -> !tile.frag<64x32xbf16>, !tile.frag<64x32xbf16>
}

// -----

tile.kernel @columns(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x24xf32>
  // expected-error @+1 {{expected a multiple of 16 columns, got 24}}
  %a, %b = tile.deinterleave columns %x : !tile.frag<64x24xf32> -> !tile.frag<64x16xf32>, !tile.frag<64x16xf32>
}

// -----

tile.kernel @wrong_half(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  // expected-error @+1 {{expected results of type '!tile.frag<64x32xf32>', got '!tile.frag<64x64xf32>'}}
  %a, %b = tile.deinterleave columns %x : !tile.frag<64x64xf32> -> !tile.frag<64x64xf32>, !tile.frag<64x64xf32>
}

// -----

tile.kernel @pin(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  // expected-error @+1 {{'tile.pin' op expected an f32 rows fragment, got '!tile.frag<64x64xf32>'}}
  tile.pin %x : !tile.frag<64x64xf32>
}

// -----

tile.kernel @any(%f: f32) threads(128) {
  %x = tile.fill %f : f32 -> !tile.frag<64x64xf32>
  // expected-error @+1 {{'tile.any' op expected a vote on an f32 rows fragment, got '!tile.frag<64x64xf32>'}}
  %some = tile.any %x : !tile.frag<64x64xf32>
}

// -----

!tile = !tile.smem<64x64xbf16, swizzle = 128>
!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
tile.kernel @stored(%d: !map, %r: i32, %f: f32) threads(128) {
  %out = tile.shared : !tile
  %x = tile.fill %f : f32 -> !tile.frag<64x128xf32>
  %h = tile.convert %x : !tile.frag<64x128xf32> -> !tile.frag<64x128xbf16, operand_a>
  // expected-error @+1 {{'tile.store_tma' op expected a 16-bit or 32-bit fragment of layout accumulator, got '!tile.frag<64x128xbf16, operand_a>'}}
  tile.store_tma %h, %out -> %d[%r, %r] : !tile.frag<64x128xbf16, operand_a>, !tile -> !map
}

// -----

!tile = !tile.smem<64x64xbf16, swizzle = 128>
!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
tile.kernel @accumulated(%d: !map, %r: i32, %f: f32) threads(128) {
  %out = tile.shared : !tile
  %x = tile.fill %f : f32 -> !tile.frag<64x128xf32>
  %h = tile.convert %x : !tile.frag<64x128xf32> -> !tile.frag<64x128xbf16>
  // expected-error @+1 {{expected a fragment of f32 to accumulate, got '!tile.frag<64x128xbf16>'}}
  tile.store_tma %h, %out -> %d[%r, %r] accumulate : !tile.frag<64x128xbf16>, !tile -> !map
}

// -----

!tile = !tile.smem<128x64xbf16, swizzle = 128>
!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
tile.kernel @staging_rows(%d: !map, %r: i32, %f: f32) threads(128) {
  %out = tile.shared : !tile
  %x = tile.fill %f : f32 -> !tile.frag<64x128xf32>
  %h = tile.convert %x : !tile.frag<64x128xf32> -> !tile.frag<64x128xbf16>
  // expected-error @+1 {{expected a swizzled staging tile of 64 rows, as the fragment has, got '!tile.smem<128x64xbf16, swizzle = 128>'}}
  tile.store_tma %h, %out -> %d[%r, %r] : !tile.frag<64x128xbf16>, !tile -> !map
}

// -----

!tile = !tile.smem<64x128xbf16, swizzle = 128>
!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
tile.kernel @slab(%d: !map, %r: i32, %f: f32) threads(128) {
  %out = tile.shared : !tile
  %x = tile.fill %f : f32 -> !tile.frag<64x128xf32>
  %h = tile.convert %x : !tile.frag<64x128xf32> -> !tile.frag<64x128xbf16>
  // expected-error @+1 {{expected a staging tile one slab wide (64 columns), a divisor of the 128 columns of the fragment, got 128 columns}}
  tile.store_tma %h, %out -> %d[%r, %r] : !tile.frag<64x128xbf16>, !tile -> !map
}

// -----

!tall = !tile.smem<128x64xbf16, swizzle = 128>
!tile = !tile.smem<64x64xbf16, swizzle = 128, slab_rows = 128>
!map = !tile.tensor_map<64x64xbf16, swizzle = 128>
tile.kernel @borrowed(%d: !map, %r: i32, %f: f32) threads(128) {
  %tall = tile.shared : !tall
  %out = tile.slice %tall[0, 0] : !tall -> !tile
  %x = tile.fill %f : f32 -> !tile.frag<64x128xf32>
  %h = tile.convert %x : !tile.frag<64x128xf32> -> !tile.frag<64x128xbf16>
  // expected-error @+1 {{expected a staging tile made by tile.shared}}
  tile.store_tma %h, %out -> %d[%r, %r] : !tile.frag<64x128xbf16>, !tile -> !map
}

// -----

tile.kernel @staging(%d: !tile.tensor_map<64x64xbf16, swizzle = 128>, %r: i32, %f: f32) threads(128) {
  %out = tile.shared : !tile.smem<64x64xbf16, swizzle = 128>
  %x = tile.fill %f : f32 -> !tile.frag<64x128xf32>
  // expected-error @+1 {{expected a staging tile of 'f32', as the fragment, got 'bf16'}}
  tile.store_tma %x, %out -> %d[%r, %r] : !tile.frag<64x128xf32>, !tile.smem<64x64xbf16, swizzle = 128> -> !tile.tensor_map<64x64xbf16, swizzle = 128>
}

// -----

tile.kernel @columns(%f: f32) threads(128) {
  %s = tile.fill %f : f32 -> !tile.frag<64x128xf32>
  // expected-error @+1 {{expected multiples of 8 within 128 columns, got columns 96 to 160}}
  %c = tile.columns %s from(96) : !tile.frag<64x128xf32> -> !tile.frag<64x64xf32>
}

// -----

tile.kernel @no_cluster(%f: f32) threads(128) {
  %s = tile.fill %f : f32 -> !tile.frag<64x128xf32>
  // expected-error @+1 {{expected a kernel with cluster(2)}}
  %c = tile.cluster_reduce %s : !tile.frag<64x128xf32> -> !tile.frag<64x64xf32>
}

// -----

tile.kernel @half(%f: f32) threads(128) cluster(2) {
  %s = tile.fill %f : f32 -> !tile.frag<64x128xf32>
  // expected-error @+1 {{expected a result of type '!tile.frag<64x64xf32>', got '!tile.frag<64x32xf32>'}}
  %c = tile.cluster_reduce %s : !tile.frag<64x128xf32> -> !tile.frag<64x32xf32>
}

// -----

tile.kernel @other_rows(%f: f32) threads(128) {
  %s = tile.fill %f : f32 -> !tile.frag<64x128xf32>
  // expected-error @+1 {{expected a result with the rows, element type and layout of '!tile.frag<64x128xf32>', got '!tile.frag<32x64xf32, half_rows>'}}
  %c = tile.columns %s from(0) : !tile.frag<64x128xf32> -> !tile.frag<32x64xf32, half_rows>
}

// -----

tile.kernel @narrow(%f: f32) threads(128) cluster(2) {
  %s = tile.fill %f : f32 -> !tile.frag<64x24xf32>
  // expected-error @+1 {{expected an f32 fragment of layout accumulator with a multiple of 16 columns, got '!tile.frag<64x24xf32>'}}
  %c = tile.cluster_reduce %s : !tile.frag<64x24xf32> -> !tile.frag<64x8xf32>
}
