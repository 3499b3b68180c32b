//===- GroupBuilder.h - turns a partition into llm.group --------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What llm-form-kernels decides, and the rewrite that carries it out.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_4_OUTLINE_GROUPBUILDER_H
#define LLMC_PASSES_4_OUTLINE_GROUPBUILDER_H

#include "passes/4_outline/KernelKinds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

#include <list>

namespace llmc {

// The ops of one kernel. The first op is the anchor until the group is built,
// which sorts the ops.
struct KernelGroup {
  KernelKind kind = KernelKind::Elementwise;
  llvm::SmallVector<mlir::Operation *> ops;
  // The value that an epilogue continues from.
  mlir::Value tail;
  EpilogueStage stage = EpilogueStage::Start;
  // Of a rope_append: the attention whose query it makes.
  mlir::Operation *attention = nullptr;

  mlir::Operation *lastOp() const;
};

struct KernelGroups {
  // A list, because groups are referred to by address.
  std::list<KernelGroup> all;
  // Ops of no group, of which each group that uses them gets its own copy.
  llvm::DenseSet<mlir::Operation *> copied;

  KernelGroup *create(KernelKind kind, mlir::Operation *op = nullptr);
  void add(KernelGroup *group, mlir::Operation *op);
  // Takes `op` out of its group; a group that becomes empty is removed.
  void move(mlir::Operation *op, KernelGroup *to);
  KernelGroup *groupOf(mlir::Operation *op) const { return owner.lookup(op); }
  // The group that computes `value`, seen through copied ops.
  KernelGroup *producer(mlir::Value value) const;

private:
  llvm::DenseMap<mlir::Operation *, KernelGroup *> owner;
};

// Replaces the ops of each group in `step` by an llm.group, in an order in
// which every value and every effect on the KV cache comes before its use.
mlir::LogicalResult buildGroups(mlir::func::FuncOp step, KernelGroups groups);

} // namespace llmc

#endif // LLMC_PASSES_4_OUTLINE_GROUPBUILDER_H
