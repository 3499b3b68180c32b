#pragma once
// What the executor needs from a model: compute a batch, give logits or tokens.
// ModelRunner does it on a device; tests have one that computes nothing.

#include "backend.h"
#include "batch.h"
#include "kv_cache_manager.h"

#include <span>

namespace llmc {

class StepRunner {
public:
  virtual ~StepRunner() = default;

  // Computes the batch. K and V of its tokens are in the cache afterwards; the
  // caller moves num_computed_tokens. May return before the device is done.
  virtual void run(const Batch &batch, const KvCacheManager &kv_cache) = 0;

  // Results of the last run; they wait for it. row: index into
  // batch.logit_rows; f32 [vocab_size].
  virtual std::span<const float> logits(int row) = 0;

  // i32 [logit rows], -1 for a row without a finite maximum. Empty when the
  // host samples.
  virtual std::span<const int32_t> next_tokens() = 0;
  virtual bool samples_on_device() const = 0;

  virtual GraphStats graph_stats() const { return {}; }
  virtual ThreadPool &thread_pool() = 0; // for sampling on the host
};

} // namespace llmc
