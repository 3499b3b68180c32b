#pragma once
// Which KV blocks belong to which sequence, and which can be used again.
//
// It moves no bytes itself: copies of blocks are collected, and whoever runs
// the next step takes them along (take_copies). Steps and copies happen in
// order on the device, so a block that is given away may still be read by a
// copy that was asked for before.

#include "block_copy.h"
#include "block_pool.h"
#include "host_blocks.h"
#include "prefix_cache.h"
#include "sequence.h"

#include <span>
#include <vector>

namespace llmc {

struct PrefixStats {
  int64_t looked_up_tokens = 0; // of sequences that were admitted
  int64_t reused_tokens = 0;    // of these, not computed again
  int64_t partial_tokens = 0;   // of these, in copies of parts of blocks
  int64_t forks = 0;            // sequences that began with another's blocks
};

struct SwapStats {
  int64_t blocks_out = 0, blocks_in = 0; // to host memory and back
};

struct KvCacheSettings {
  bool enable_reuse = true;
  bool enable_partial_reuse = true; // only with enable_reuse
  int num_host_blocks = 0;
};

class KvCacheManager {
public:
  // num_blocks: block 0 included.
  KvCacheManager(int num_blocks, int block_size,
                 const KvCacheSettings &settings = {})
      : pool_(num_blocks),
        prefixes_(settings.enable_reuse ? num_blocks : 1, block_size),
        host_(settings.num_host_blocks), block_size_(block_size),
        enable_reuse_(settings.enable_reuse),
        enable_partial_reuse_(settings.enable_reuse &&
                              settings.enable_partial_reuse) {}

  // The longest known beginning of a sequence without blocks, short of its last
  // token, whose logits somebody wants: full blocks, which are shared, and a
  // part of one more, which is copied. Valid until the next call.
  struct Prefix {
    std::span<const PrefixCache::Entry> entries;
    int num_idle = 0;           // of them; using these makes the pool smaller
    BlockId partial_block = 0;  // 0: none
    int num_partial_tokens = 0; // of its beginning
    bool is_fork = false;
  };
  Prefix find_prefix(const Sequence &sequence);
  // The same of a sequence whose prompt another one has computed, at least up
  // to its last token.
  Prefix find_fork(const Sequence &sequence, const Sequence &leader);
  // Also brings back what host memory has of the sequence beyond the prefix.
  // The pool has free blocks for all that (blocks_for(num_tokens()) is enough).
  void use_prefix(Sequence &sequence, const Prefix &prefix);

  // A copy of `parent`, whose tokens are all known: it shares full blocks, the
  // last one is copied. False when the pool has no block for that; `child` has
  // the tokens then and nothing in the cache.
  [[nodiscard]] bool fork(const Sequence &parent, Sequence &child);

  // Makes sure the sequence has blocks for its next `num_new_tokens`. False and
  // unchanged when the pool is full.
  [[nodiscard]] bool allocate_slots(Sequence &sequence, int num_new_tokens);

  // K and V of the next `num_tokens` are in the cache now; full blocks become
  // known to others.
  void advance(Sequence &sequence, int num_tokens);

  // The same, after tokens that were pending came to be known.
  void publish_blocks(Sequence &sequence);

  // Gives all blocks back, those in host memory too, and forgets what was
  // computed.
  void free(Sequence &sequence);

  // Gives the blocks in the pool back and keeps their contents in host memory,
  // when that has room for all; else forgets what was computed.
  void swap_out(Sequence &sequence);

  // What was collected since the last call is the step's now.
  void take_copies(std::vector<BlockCopy> &copies) {
    copies.insert(copies.end(), copies_.begin(), copies_.end());
    copies_.clear();
  }

  // After a failed step nobody knows what the blocks hold; sequences keep
  // theirs but no block is found any more. Copies that no step took are not
  // made: free() the sequences that wait for them.
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
  const HostBlocks &host() const { return host_; }
  const PrefixStats &prefix_stats() const { return prefix_stats_; }
  const SwapStats &swap_stats() const { return swap_stats_; }

private:
  std::span<const int32_t> block_tokens(const Sequence &sequence,
                                        size_t block) const {
    return std::span(sequence.tokens)
        .subspan(block * static_cast<size_t>(block_size_),
                 static_cast<size_t>(block_size_));
  }
  BlockId add_block(Sequence &sequence);
  void swap_in(Sequence &sequence);
  void release_blocks(Sequence &sequence);
  void release_host_blocks(Sequence &sequence);

  BlockPool pool_;
  PrefixCache prefixes_;
  HostBlocks host_;
  int block_size_;
  bool enable_reuse_, enable_partial_reuse_;
  std::vector<BlockCopy> copies_;         // for the next step
  std::vector<PrefixCache::Entry> found_; // of the last find_prefix
  PrefixStats prefix_stats_;
  SwapStats swap_stats_;
};

} // namespace llmc
