#pragma once
// Teacher-forced scoring: logits of given tokens, through the same paged and
// chunked path as generation.

#include "kv_cache_manager.h"
#include "step_runner.h"

#include <cstdint>
#include <span>
#include <vector>

namespace llmc {

struct ForwardSequence {
  std::span<const int32_t> tokens;
  std::vector<int32_t> rows; // positions whose logits are wanted, ascending
};

struct ForwardLimits {
  int max_batch_size, max_num_tokens, max_logit_rows;
};

// Writes the wanted rows back to back into `logits`. Needs blocks_for(longest
// sequence) free blocks and gives all back, also when it throws.
void forward(std::span<const ForwardSequence> sequences,
             const ForwardLimits &limits, StepRunner &runner,
             KvCacheManager &kv_cache, float *logits);

} // namespace llmc
