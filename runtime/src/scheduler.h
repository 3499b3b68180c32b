#pragma once
// Decides before each step which requests compute how many tokens.
//
// There are no prefill and decode phases: each running request has tokens whose
// K and V are not computed yet, and a step moves num_computed_tokens towards
// num_tokens under one token budget. A long prompt is computed in chunks beside
// the decodes of others.

#include "batch.h"
#include "kv_cache_manager.h"
#include "request.h"

#include <deque>
#include <memory>
#include <vector>

namespace llmc {

struct SchedulerConfig {
  int max_batch_size = 1; // sequences of one step
  int max_num_tokens = 1; // tokens of one step; at least max_batch_size, so
                          // that no decode has to wait for a turn
  llmc_policy policy = LLMC_GUARANTEED_NO_EVICT;
};

class Scheduler {
public:
  Scheduler(const SchedulerConfig &config, KvCacheManager &kv_cache)
      : config_(config), kv_cache_(kv_cache) {}

  void add(std::shared_ptr<Request> request);

  // The next step, valid until the next call. Empty only when there is no
  // unfinished request.
  const Batch &schedule();

  // Ends a request in any state: its blocks are free when this returns.
  void finish(Request &request);

  // Drops what finish() ended from the queues; call between steps.
  void remove_finished();

  const std::vector<std::shared_ptr<Request>> &running() const {
    return running_;
  }
  const std::deque<std::shared_ptr<Request>> &waiting() const {
    return waiting_;
  }
  bool has_work() const { return !running_.empty() || !waiting_.empty(); }
  int64_t num_preemptions() const { return num_preemptions_; }

private:
  bool schedule_running(Request &request, Batch &batch);
  bool admit(Request &request);
  void add_to_batch(Request &request, int num_tokens, Batch &batch);
  bool preempt_youngest(const Batch &batch, const Request &keep);

  const SchedulerConfig config_;
  KvCacheManager &kv_cache_;
  std::vector<std::shared_ptr<Request>> running_; // oldest first
  std::vector<std::shared_ptr<Request>> order_;   // running_ as a step began
  Batch batch_; // both kept to avoid allocation
  std::deque<std::shared_ptr<Request>> waiting_; // first come, first served
  int64_t reserved_blocks_ = 0; // worst case of all running requests
  int64_t num_preemptions_ = 0;
};

} // namespace llmc
