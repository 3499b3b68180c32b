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

// sum[r][v] = init[r][v] + sum over k from begin to depth of a[row + r, k] *
// b[leading, k, columns[v]...]
struct Product {
  mlir::Value a; // memref [rows, K] of f32 or of one-byte codes
  mlir::Value row;
  int64_t numRows;
  mlir::Value b; // memref [leading..., K, columns] of any float type or i8
  llvm::SmallVector<mlir::Value> leading;
  llvm::SmallVector<mlir::Value> columns; // first of each vector
  mlir::Value depth;                      // the k after the last
  // Where `b` comes from memory: how far ahead of k to ask for it, in rows of
  // `b`. May lead past its end.
  int64_t prefetchDistance = 0;
  mlir::Value begin; // first k; null: 0
  // The f32 values of the codes of `a`, by code; null: `a` holds f32.
  mlir::Value valuesOfA;
  // 2: each i8 of `b` holds two 4-bit integers, that of the even k in its low
  // half; `b` has half as many rows, and `begin` is even.
  int64_t perElement = 1;
  // Of each vector of columns, subtracted from what `b` holds; empty: nothing.
  llvm::SmallVector<mlir::Value> zeros;
};

// Sums by row, then by vector. Each is one chain of multiply-adds in the order
// of k, whatever numRows is: a row has the same bits in any block.
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
