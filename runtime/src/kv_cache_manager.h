#pragma once
// Which KV blocks belong to which sequence, and which can be used again.

#include "block_pool.h"
#include "prefix_cache.h"
#include "sequence.h"

#include <span>
#include <vector>

namespace llmc {

struct PrefixStats {
  int64_t looked_up_tokens = 0; // of sequences that were admitted
  int64_t reused_tokens = 0;    // of these, not computed again
};

class KvCacheManager {
public:
  // num_blocks: block 0 included.
  KvCacheManager(int num_blocks, int block_size, bool enable_reuse = true)
      : pool_(num_blocks), prefixes_(enable_reuse ? num_blocks : 1, block_size),
        block_size_(block_size), enable_reuse_(enable_reuse) {}

  // The longest known beginning of a sequence without blocks, in full blocks
  // and short of its last token, whose logits somebody wants. Valid until the
  // next call.
  struct Prefix {
    std::span<const PrefixCache::Entry> entries;
    int num_idle = 0; // of them; using these makes the pool smaller
  };
  Prefix find_prefix(const Sequence &sequence);
  void use_prefix(Sequence &sequence, const Prefix &prefix);

  // Makes sure the sequence has blocks for its next `num_new_tokens`. False and
  // unchanged when the pool is full.
  [[nodiscard]] bool allocate_slots(Sequence &sequence, int num_new_tokens);

  // K and V of the next `num_tokens` are in the cache now; full blocks become
  // known to others.
  void advance(Sequence &sequence, int num_tokens);

  // The same, after tokens that were pending came to be known.
  void publish_blocks(Sequence &sequence);

  // Gives all blocks back and forgets what was computed.
  void free(Sequence &sequence);

  // After a failed step nobody knows what the blocks hold; sequences keep
  // theirs but no block is found any more.
  void forget_prefixes();

  // Throws LLMC_INTERNAL when the pool's books are wrong, or when `sequences`
  // are not all the owners that its blocks have. O(blocks).
  void check(std::span<const Sequence *const> sequences) const;

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
  const PrefixStats &prefix_stats() const { return prefix_stats_; }

private:
  std::span<const int32_t> block_tokens(const Sequence &sequence,
                                        size_t block) const {
    return std::span(sequence.tokens)
        .subspan(block * static_cast<size_t>(block_size_),
                 static_cast<size_t>(block_size_));
  }

  BlockPool pool_;
  PrefixCache prefixes_;
  int block_size_;
  bool enable_reuse_;
  std::vector<PrefixCache::Entry> found_; // of the last find_prefix
  PrefixStats prefix_stats_;
};

} // namespace llmc
