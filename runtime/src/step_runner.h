#pragma once
// What the executor needs from a model: compute a batch, give logits or tokens.
// ModelRunner does it on a device; tests have one that computes nothing.

#include "backend.h"
#include "batch.h"
#include "device_times.h"
#include "kv_cache_manager.h"

#include <optional>
#include <span>
#include <string>

namespace llmc {

class StepRunner {
public:
  virtual ~StepRunner() = default;

  // Computes the batch. K and V of its tokens are in the cache afterwards; the
  // caller moves num_computed_tokens. May return before the device is done.
  virtual void run(const Batch &batch, const KvCacheManager &kv_cache) = 0;

  // A step may be run while the one before runs, with entries whose token that
  // one samples (BatchEntry::pending_row). Never more than one ahead.
  virtual bool overlaps() const { return false; }

  // Waits for the last run with Batch::slot `slot`; throws what it failed with.
  virtual void wait(int slot) = 0;

  // Of the last run, for which it waits. row: index into batch.logit_rows; f32
  // [vocab_size].
  virtual std::span<const float> logits(int row) = 0;

  // Of the last run with Batch::slot `slot`, for which it waits: i32 [logit
  // rows], -1 for a row without a finite maximum. Empty when the host samples.
  // Valid until the next run with that slot.
  virtual std::span<const int32_t> next_tokens(int slot) = 0;
  virtual bool samples_on_device() const = 0;
  // Whether the device applies rules of so many words to a row; see
  // RowRules::num_words.
  virtual bool has_room_for_rules(size_t) const { return false; }

  // Why nothing can be computed any more; empty while it can.
  virtual std::string why_lost() const { return {}; }

  // See Backend.
  virtual void measure_device_times() {}
  virtual std::optional<DeviceTimes> device_times(int) { return std::nullopt; }

  virtual GraphStats graph_stats() const { return {}; }
  virtual ThreadPool &thread_pool() = 0; // for sampling on the host
};

} // namespace llmc
