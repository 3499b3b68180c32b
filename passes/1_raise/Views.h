//===- Views.h - builds slices, transposes and reshapes ---------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each returns its operand unchanged when there is nothing to do.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_1_RAISE_VIEWS_H
#define LLMC_PASSES_1_RAISE_VIEWS_H

#include "mlir/IR/Builders.h"

namespace llmc {

// Whether the op only moves data: what traceViews looks through, and dim reads.
bool isView(mlir::Operation *op);

// Whether the op computes each element from the elements at the same place.
bool isElementwise(mlir::Operation *op);

// A slice with unit strides; a dynamic size is that of the whole dimension.
mlir::Value slice(mlir::OpBuilder &builder, mlir::Location loc,
                  mlir::Value tensor, llvm::ArrayRef<int64_t> offsets,
                  llvm::ArrayRef<int64_t> sizes);

mlir::Value transpose(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value tensor, llvm::ArrayRef<int64_t> permutation);

// Adds or drops dimensions of size 1.
mlir::Value reshapeUnits(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::Value tensor, llvm::ArrayRef<int64_t> shape);

} // namespace llmc

#endif // LLMC_PASSES_1_RAISE_VIEWS_H
