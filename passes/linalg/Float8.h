// Conversions of 8-bit floats by integer arithmetic: LLVM has no such types.
#pragma once

#include "mlir/IR/Builders.h"

namespace llmc {
bool isFloat8(mlir::Type element);
// An f8 scalar or vector as f32.
mlir::Value extendFloat8(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::Value value);
// An f32 scalar within the range of `type` or NaN, rounded to nearest, ties to
// even.
mlir::Value truncateToFloat8(mlir::OpBuilder &builder, mlir::Location loc,
                             mlir::Value value, mlir::Type type);
} // namespace llmc
