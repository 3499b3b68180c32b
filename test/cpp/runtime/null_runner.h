#pragma once
// A model that computes nothing: its tokens are scripted, and in place of K and
// V it keeps a hash of all tokens up to each slot. Reading a step's blocks back
// shows at once when a block was lost, shared wrongly or not computed.

#include "error.h"
#include "sequence.h"
#include "step_runner.h"
#include "thread_pool.h"

#include <cstdint>
#include <vector>

namespace llmc::test {

inline constexpr int kNullVocab = 1000;

inline uint64_t chain(uint64_t before, int32_t token) {
  uint64_t x = before * 0x9e3779b97f4a7c15 + static_cast<uint32_t>(token) + 1;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9;
  return x ^ (x >> 32);
}

inline uint64_t chain_start(uint64_t salt) { return salt * 31 + 7; }

inline int32_t scripted(uint64_t hash) {
  return static_cast<int32_t>((hash >> 20) % kNullVocab);
}

// The only right output for these tokens.
inline std::vector<int32_t> scripted_output(const std::vector<int32_t> &prompt,
                                            uint64_t salt, int count) {
  uint64_t hash = chain_start(salt);
  for (int32_t token : prompt)
    hash = chain(hash, token);
  std::vector<int32_t> output;
  for (int i = 0; i < count; ++i) {
    output.push_back(scripted(hash));
    hash = chain(hash, output.back());
  }
  return output;
}

class NullRunner : public StepRunner {
public:
  // verify: read every token of every sequence back in each step. Without it a
  // step costs as little as it can (for timing).
  NullRunner(int num_blocks, int block_size, bool verify = true)
      : slots_(static_cast<size_t>(num_blocks) *
               static_cast<size_t>(block_size)),
        verify_(verify) {}

  void run(const Batch &batch, const KvCacheManager &kv_cache) override {
    next_.clear();
    if (verify_)
      for (const BatchEntry &entry : batch.entries)
        compute(*entry.sequence, entry.num_tokens, kv_cache);
    for (const LogitRow &row : batch.logit_rows) {
      const BatchEntry &entry = batch.entries[static_cast<size_t>(row.entry)];
      int last = entry.sequence->num_computed_tokens + entry.num_tokens - 1;
      next_.push_back(verify_ ? scripted(slot(*entry.sequence, last, kv_cache))
                              : last);
    }
  }
  std::span<const float> logits(int) override {
    fail(LLMC_INTERNAL, "the null runner has no logits");
  }
  std::span<const int32_t> next_tokens() override { return next_; }
  bool samples_on_device() const override { return true; }
  ThreadPool &thread_pool() override { return pool_; }

private:
  uint64_t &slot(const Sequence &sequence, int position,
                 const KvCacheManager &kv_cache) {
    return slots_.at(static_cast<size_t>(kv_cache.slot(sequence, position)));
  }
  void compute(const Sequence &sequence, int num_tokens,
               const KvCacheManager &kv_cache) {
    uint64_t hash = chain_start(sequence.cache_salt);
    int end = sequence.num_computed_tokens + num_tokens;
    for (int position = 0; position < end; ++position) {
      hash = chain(hash, sequence.tokens[static_cast<size_t>(position)]);
      uint64_t &stored = slot(sequence, position, kv_cache);
      if (position >= sequence.num_computed_tokens)
        stored = hash;
      else if (stored != hash)
        fail(LLMC_INTERNAL, "position ", position, " of ", end,
             " holds other tokens than the sequence");
    }
  }

  std::vector<uint64_t> slots_;
  std::vector<int32_t> next_;
  const bool verify_;
  ThreadPool pool_{1};
};

} // namespace llmc::test
