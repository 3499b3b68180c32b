#pragma once
// Sequences without requests, for tests of the KV cache.

#include "check.h"
#include "kv_cache_manager.h"

#include <utility>
#include <vector>

namespace llmc::test {

inline Sequence sequence_of(std::vector<int32_t> tokens, uint64_t salt = 0) {
  Sequence sequence;
  sequence.tokens = std::move(tokens);
  sequence.num_prompt_tokens = sequence.num_tokens();
  sequence.cache_salt = salt;
  return sequence;
}

// Takes what is known, computes the rest.
inline void compute(KvCacheManager &kv, Sequence &sequence) {
  kv.use_prefix(sequence, kv.find_prefix(sequence));
  int left = sequence.num_uncomputed_tokens();
  REQUIRE(kv.allocate_slots(sequence, left));
  kv.advance(sequence, left);
}

} // namespace llmc::test
