// The inner kernel of host products: sums of a few rows that stay in registers.
#pragma once

#include "mlir/IR/Builders.h"

namespace llmc {

// What the target's registers hold.
struct VectorShape {
  int64_t lanes;        // f32 elements of a vector
  int64_t accumulators; // vectors of sums, beside those of the operands
  static VectorShape ofBits(int64_t bits) {
    return {bits / 32, bits == 512 ? 24 : 12};
  }
};

// sum[r][v] = init[r][v] + sum over k < depth of a[row + r, k] * b[leading, k,
// columns[v]...]
struct Product {
  mlir::Value a; // memref [rows, K] of f32
  mlir::Value row;
  int64_t numRows;
  mlir::Value b; // memref [leading..., K, columns] of any float type
  llvm::SmallVector<mlir::Value> leading;
  llvm::SmallVector<mlir::Value> columns; // first of each vector
  mlir::Value depth;
  // How many k may be taken at once: depth is a multiple of it.
  int64_t maxUnroll = 1;
  // Where `b` comes from memory and few rows hide its latency: how far ahead of
  // k to ask for it, in k. May lead past the end of `b`.
  int64_t prefetchDistance = 0;
};

// Sums by row, then by vector.
using Sums = llvm::SmallVector<llvm::SmallVector<mlir::Value>>;

// `init` may be empty: zeros.
Sums emitProduct(mlir::OpBuilder &b, mlir::Location loc, const Product &product,
                 VectorShape shape, const Sums &init = {});

// Runs `body` on blocks of rows from `begin` to `end`: of `sizes[0]` rows as
// often as possible, then of `sizes[1]`, and so on; the last size must be 1.
void forRowBlocks(
    mlir::OpBuilder &b, mlir::Location loc, mlir::Value begin, mlir::Value end,
    llvm::ArrayRef<int64_t> sizes,
    llvm::function_ref<void(mlir::Value row, int64_t numRows)> body);

} // namespace llmc
