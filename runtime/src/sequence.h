#pragma once
// Tokens of one sequence and how far its KV cache has come.

#include "block_pool.h"

#include <cstdint>
#include <vector>

namespace llmc {

struct Sequence {
  std::vector<int32_t> tokens; // prompt, then generated
  int num_prompt_tokens = 0;
  int num_computed_tokens =
      0; // tokens whose K and V are in the cache; chases tokens.size()
  std::vector<BlockId>
      blocks; // block i holds positions [i * block_size, (i + 1) * block_size)

  int num_tokens() const { return static_cast<int>(tokens.size()); }
  int num_generated_tokens() const { return num_tokens() - num_prompt_tokens; }
  int num_uncomputed_tokens() const {
    return num_tokens() - num_computed_tokens;
  }
};

} // namespace llmc
