#pragma once
// Reference-counted KV blocks. Block 0 is reserved: padding rows write there.
//
// A block is in one of three states: used (references > 0), idle (no reference,
// but its contents are known to the prefix cache and may be asked for again) or
// empty. New blocks are taken from the empty ones, then from the idle ones:
// those of the lowest retention priority first, and of these the least recently
// used. Both count as free.

#include <cstdint>
#include <optional>
#include <vector>

namespace llmc {

using BlockId = int32_t;

inline constexpr int kMaxRetention = 100; // 0 (evicted first) .. 100
inline constexpr int kDefaultRetention = 35;

class BlockPool {
public:
  explicit BlockPool(int num_blocks); // block 0 included

  // With one reference; nothing when all are in use. The block is no longer
  // cached.
  std::optional<BlockId> allocate();
  void retain(BlockId block);  // of a used or an idle block
  void release(BlockId block); // idle or empty when its last reference goes

  // The contents of a used block are worth keeping after the last reference. A
  // block that was cached already keeps the higher of both priorities.
  void set_cached(BlockId block, int retention = kDefaultRetention);

  int num_usable() const { return static_cast<int>(references_.size()) - 1; }
  int num_free() const { return static_cast<int>(empty_.size()) + num_idle_; }
  int num_idle() const { return num_idle_; }
  int num_used() const { return num_usable() - num_free(); }
  int64_t num_evictions() const { return num_evictions_; }
  int references(BlockId block) const {
    return references_[static_cast<size_t>(block)];
  }
  bool is_cached(BlockId block) const {
    return cached_[static_cast<size_t>(block)] != 0;
  }
  int retention(BlockId block) const { // of a cached block
    return cached_[static_cast<size_t>(block)] - 1;
  }

  // No contents are worth keeping: idle blocks become empty.
  void clear_cached();

  // Throws LLMC_INTERNAL when lists and counts disagree. O(blocks).
  void check() const;

private:
  struct Link {
    BlockId older = 0, newer = 0;
  };
  Link &link(BlockId block) { return links_[static_cast<size_t>(block)]; }
  BlockId ring(int retention) const { // its anchor
    return static_cast<BlockId>(references_.size()) + retention;
  }
  BlockId first_to_evict() const;
  void append_idle(BlockId block);
  void remove_idle(BlockId block);

  // The last one is given next: the block most likely to be in a CPU cache.
  std::vector<BlockId> empty_;
  std::vector<int> references_;
  std::vector<uint8_t> cached_; // 0, or the retention priority + 1
  // Idle blocks of one priority form a ring through its anchor, behind the
  // links of all blocks; the anchor's `newer` is the oldest.
  std::vector<Link> links_;
  int num_idle_ = 0;
  int64_t num_evictions_ = 0;
};

} // namespace llmc
