//===- AssignOffsets.cpp - packs blocks with lifetimes --------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/5_plan/AssignOffsets.h"

#include "llvm/ADT/STLExtras.h"

#include <functional>
#include <limits>

using namespace llvm;

namespace llmc {

static bool meet(const MemoryBlock &a, const MemoryBlock &b) {
  return a.first <= b.last && b.first <= a.last;
}

// The smallest gap that holds `block` between the placed blocks it meets, which
// are sorted by offset; behind all of them when no gap does.
static int64_t bestFit(const MemoryBlock &block,
                       ArrayRef<const MemoryBlock *> placed) {
  int64_t best = -1, bestGap = std::numeric_limits<int64_t>::max(), end = 0;
  for (const MemoryBlock *other : placed) {
    if (!meet(block, *other))
      continue;
    int64_t gap = other->offset - end;
    if (gap >= block.size && gap < bestGap) {
      best = end;
      bestGap = gap;
    }
    end = std::max(end, other->offset + other->size);
  }
  return best >= 0 ? best : end;
}

static int64_t place(ArrayRef<MemoryBlock *> order) {
  SmallVector<const MemoryBlock *> placed;
  int64_t bytes = 0;
  for (MemoryBlock *block : order) {
    block->offset = bestFit(*block, placed);
    bytes = std::max(bytes, block->offset + block->size);
    auto byOffset = [](const MemoryBlock *a, const MemoryBlock *b) {
      return a->offset < b->offset;
    };
    placed.insert(llvm::upper_bound(placed, block, byOffset), block);
  }
  return bytes;
}

int64_t assignOffsets(MutableArrayRef<MemoryBlock> blocks) {
  auto area = [](const MemoryBlock &block) {
    return block.size * (block.last - block.first + 1);
  };
  using Before = std::function<bool(const MemoryBlock *, const MemoryBlock *)>;
  const Before orders[] = {
      [](auto *a, auto *b) { return a->size > b->size; },
      [&](auto *a, auto *b) { return area(*a) > area(*b); },
      [](auto *a, auto *b) { return a->first < b->first; },
      [](auto *a, auto *b) { return a->last < b->last; }};

  int64_t best = std::numeric_limits<int64_t>::max();
  SmallVector<int64_t> offsets;
  for (const Before &before : orders) {
    SmallVector<MemoryBlock *> order =
        llvm::to_vector(llvm::make_pointer_range(blocks));
    llvm::stable_sort(order, before);
    int64_t bytes = place(order);
    if (bytes >= best)
      continue;
    best = bytes;
    offsets =
        llvm::map_to_vector(blocks, [](auto &block) { return block.offset; });
  }
  for (auto [block, offset] : llvm::zip_equal(blocks, offsets))
    block.offset = offset;
  return best;
}

int64_t peakBytes(ArrayRef<MemoryBlock> blocks) {
  int64_t peak = 0;
  // The peak is reached where some block comes into use.
  for (const MemoryBlock &start : blocks) {
    int64_t live = 0;
    for (const MemoryBlock &block : blocks)
      if (block.first <= start.first && start.first <= block.last)
        live += block.size;
    peak = std::max(peak, live);
  }
  return peak;
}

} // namespace llmc
