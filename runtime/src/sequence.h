#pragma once
// Tokens of one sequence and how far its KV cache has come.

#include "block_table.h"

#include <cstdint>
#include <vector>

namespace llmc {

inline constexpr int32_t kPendingToken = -1;

struct Sequence {
  std::vector<int32_t> tokens; // prompt, then generated
  int num_prompt_tokens = 0;
  // At the end of `tokens`: a step in flight computes them, and until it is
  // done they are kPendingToken.
  int num_pending_tokens = 0;
  int num_computed_tokens =
      0; // tokens whose K and V are in the cache; chases tokens.size()
  BlockTable
      blocks; // block i holds positions [i * block_size, (i + 1) * block_size)

  // Of a preempted sequence: host block i holds what block i held, of the first
  // num_swapped_tokens tokens.
  std::vector<int32_t> host_blocks;
  int num_swapped_tokens = 0;

  // Prefix reuse: kept by KvCacheManager.
  uint64_t cache_salt = 0; // only sequences of the same salt share blocks
  int retention_priority = kDefaultRetention; // of its blocks, see BlockPool
  uint64_t last_content = 0;                  // of the known blocks; 0: none
  int num_known_blocks = 0;   // full blocks that the prefix cache has seen
  int num_reused_tokens = -1; // found at the first admission; -1: none yet

  int num_tokens() const { return static_cast<int>(tokens.size()); }
  int num_generated_tokens() const { return num_tokens() - num_prompt_tokens; }
  int num_known_tokens() const { return num_tokens() - num_pending_tokens; }
  int num_uncomputed_tokens() const {
    return num_tokens() - num_computed_tokens;
  }
};

} // namespace llmc
