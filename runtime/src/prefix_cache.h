#pragma once
// Finds the KV block that holds given tokens after a given beginning.
//
// Full blocks form a tree: a block is known by the contents before it (its
// parent) and its own tokens, and each known content has a number that is never
// used twice. A hash only leads to the candidates; parent, salt and tokens are
// compared, so two prompts never share a block by a collision. A child whose
// parent was evicted cannot be reached again and ages out.

#include "block_pool.h"

#include <cstdint>
#include <span>
#include <vector>

namespace llmc {

// 0: the empty beginning of a sequence.
using ContentId = uint64_t;

class PrefixCache {
public:
  PrefixCache(int num_blocks, int block_size); // block 0 included

  struct Entry {
    BlockId block = 0; // 0: unknown
    ContentId content = 0;
  };

  // tokens: block_size of them. `salt` separates tenants.
  Entry find(ContentId parent, uint64_t salt,
             std::span<const int32_t> tokens) const;

  // The known block after `parent` that begins with most of `tokens`, and how
  // many these are; at least one, or no block. Of equal ones the youngest.
  struct Beginning {
    BlockId block = 0;
    int num_tokens = 0;
  };
  Beginning find_beginning(ContentId parent, uint64_t salt,
                           std::span<const int32_t> tokens) const;

  // Remembers `block`, or returns the entry that has the same contents already.
  Entry insert(ContentId parent, uint64_t salt, std::span<const int32_t> tokens,
               BlockId block);

  void forget(BlockId block); // harmless when it is not known
  void forget_all();

private:
  struct Node {
    ContentId content = 0; // 0: not in the cache
    ContentId parent = 0;
    uint64_t salt = 0;
    BlockId next = 0;         // in its bucket
    BlockId next_sibling = 0; // in its bucket by first token
  };
  Entry find(size_t bucket, ContentId parent, uint64_t salt,
             std::span<const int32_t> tokens) const;
  size_t bucket(ContentId parent, uint64_t salt,
                std::span<const int32_t> tokens) const;
  // Of blocks after `parent` that begin with the same token.
  size_t sibling_bucket(ContentId parent, uint64_t salt, int32_t token) const {
    return bucket(parent, salt, {&token, 1});
  }
  std::span<const int32_t> tokens_of(BlockId block) const {
    return {tokens_.data() + static_cast<size_t>(block) * block_size_,
            block_size_};
  }

  size_t block_size_;
  std::vector<Node> nodes_;     // one a block
  std::vector<int32_t> tokens_; // block_size a block
  std::vector<BlockId> buckets_, sibling_buckets_;
  ContentId next_content_ = 1;
};

} // namespace llmc
