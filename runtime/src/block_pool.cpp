#include "block_pool.h"

#include "error.h"

namespace llmc {

BlockPool::BlockPool(int num_blocks)
    : references_(static_cast<size_t>(num_blocks), 0) {
  for (BlockId block = num_blocks - 1; block >= 1; --block)
    free_.push_back(block);
}

std::optional<BlockId> BlockPool::allocate() {
  if (free_.empty())
    return std::nullopt;
  BlockId block = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockPool::retain(BlockId block) {
  int &count = references_.at(static_cast<size_t>(block));
  if (block == 0 || count == 0)
    fail(LLMC_INTERNAL, "retain of free KV block ", block);
  ++count;
}

void BlockPool::release(BlockId block) {
  int &count = references_.at(static_cast<size_t>(block));
  if (block == 0 || count == 0)
    fail(LLMC_INTERNAL, "release of free KV block ", block);
  if (--count == 0)
    free_.push_back(block);
}

} // namespace llmc
