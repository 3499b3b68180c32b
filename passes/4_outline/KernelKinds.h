//===- KernelKinds.h - which ops make a kernel ------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The table of docs/architecture.md, section 1.3, as predicates on ops.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_4_OUTLINE_KERNELKINDS_H
#define LLMC_PASSES_4_OUTLINE_KERNELKINDS_H

#include "mlir/IR/Operation.h"

namespace llmc {

enum class KernelKind {
  Embedding,
  Norm,
  Linear,
  RopeAppend,
  Attention,
  RopeTable,
  Elementwise,
  Sample,
};

// The `anchor` attribute of a kind.
llvm::StringRef kernelAnchor(KernelKind kind);

// The kind of kernel that `op` starts, if it starts one. Norms of heads do not:
// they are part of a rope_append kernel.
std::optional<KernelKind> startedKind(mlir::Operation *op);

// Reshapes and slices: a kernel computes them by addressing.
bool isViewOp(mlir::Operation *op);

// What makes codes and scales out of rows.
bool isQuantizeOp(mlir::Operation *op);

// Conversions between float types.
bool isCastOp(mlir::Operation *op);

// One result element for each element of operands of the same shape.
bool isElementwiseOp(mlir::Operation *op);

// Where the tail of a kernel stands in its epilogue. An epilogue only moves on.
enum class EpilogueStage { Start, Chain, Residual, Cast };

// What a further op would be in an epilogue.
enum class EpilogueOp {
  PackedGlu, // halves the columns
  Unary,     // activation, bias, scale: one activation operand
  Residual,  // sum with another activation of the same shape
  Cast,
  View,
  Other, // elementwise of several activations
};

// The stage after `op` joins a kernel of `kind` whose tail is at `stage`; none
// when that kernel cannot hold it.
std::optional<EpilogueStage> joinEpilogue(KernelKind kind, EpilogueStage stage,
                                          EpilogueOp op);

} // namespace llmc

#endif // LLMC_PASSES_4_OUTLINE_KERNELKINDS_H
