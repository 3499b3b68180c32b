#pragma once
// Which KV blocks belong to which sequence.

#include "block_pool.h"
#include "sequence.h"

namespace llmc {

class KvCacheManager {
public:
  KvCacheManager(int num_blocks, int block_size)
      : pool_(num_blocks), block_size_(block_size) {}

  // Makes sure the sequence has blocks for its next `num_new_tokens`. False and
  // unchanged when the pool is full.
  [[nodiscard]] bool allocate_slots(Sequence &sequence, int num_new_tokens);

  // Gives all blocks back and forgets what was computed.
  void free(Sequence &sequence);

  int blocks_for(int64_t num_tokens) const {
    return static_cast<int>((num_tokens + block_size_ - 1) / block_size_);
  }
  int32_t slot(const Sequence &sequence, int position) const {
    return sequence.blocks[static_cast<size_t>(position / block_size_)] *
               block_size_ +
           position % block_size_;
  }
  int block_size() const { return block_size_; }
  const BlockPool &pool() const { return pool_; }

private:
  BlockPool pool_;
  int block_size_;
};

} // namespace llmc
