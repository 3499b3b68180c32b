//===- AssignOffsets.h - packs blocks with lifetimes ------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_5_PLAN_ASSIGNOFFSETS_H
#define LLMC_PASSES_5_PLAN_ASSIGNOFFSETS_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>

namespace llmc {

// Memory that is in use from launch `first` to launch `last`, both included.
struct MemoryBlock {
  int64_t size = 0;
  int64_t first = 0;
  int64_t last = 0;
  int64_t offset = 0;
};

// Chooses offsets such that blocks in use at the same launch do not overlap,
// and returns the bytes needed. Sizes are multiples of the wanted alignment, so
// offsets are too. Optimal packing is NP-hard; this takes the best of three
// greedy orders.
int64_t assignOffsets(llvm::MutableArrayRef<MemoryBlock> blocks);

// The most bytes in use at one launch: no packing needs fewer.
int64_t peakBytes(llvm::ArrayRef<MemoryBlock> blocks);

} // namespace llmc

#endif // LLMC_PASSES_5_PLAN_ASSIGNOFFSETS_H
