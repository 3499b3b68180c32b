#pragma once
// Decides before each step which requests compute how many tokens.
//
// There are no prefill and decode phases: each running request has tokens whose
// K and V are not computed yet, and a step moves num_computed_tokens towards
// num_tokens under one token budget. A long prompt is computed in chunks beside
// the decodes of others.
//
// Order. A request's rank is its arrival number plus priority *
// kPriorityWindow (lower goes first), fixed when it arrives or when its
// priority changes. Admission is in order of rank and nobody overtakes the
// first, so a request waits for at most kPriorityWindow * (its priority - the
// lowest) later arrivals: none waits for ever.
//
// Forks. Of several requests for one prompt the first is the leader: the others
// wait while it computes the prompt, others may start meanwhile, and then they
// share its full blocks and get a copy of the last one. When it ends or is
// preempted before, they start like all others.
//
// Beams. The beams of a search are requests that run side by side, each with
// its sequence, and that start, are preempted and end together: one of them
// waiting for blocks that others of its kind hold would wait for ever. Seats
// and blocks for all are kept free from the start.

#include "batch.h"
#include "kv_cache_manager.h"
#include "request.h"

#include <climits>
#include <deque>
#include <memory>
#include <vector>

namespace llmc {

inline constexpr int64_t kPriorityWindow = 64; // arrivals
inline constexpr int kMaxPriority = 100;       // -100 (first) .. 100

struct SchedulerConfig {
  int max_batch_size = 1; // sequences of one step
  int max_num_tokens = 1; // tokens of one step; at least max_batch_size, so
                          // that no decode has to wait for a turn
  int max_logit_rows = INT_MAX; // of one step; at least max_batch_size
  llmc_policy policy = LLMC_GUARANTEED_NO_EVICT;
};

class Scheduler {
public:
  using RequestPtr = std::shared_ptr<Request>;

  Scheduler(const SchedulerConfig &config, KvCacheManager &kv_cache)
      : config_(config), kv_cache_(kv_cache) {}

  void add(RequestPtr request);
  void set_priority(Request &request, int priority);

  // The next step, valid until the next call but one. Empty when no unfinished
  // request has anything left to compute.
  const Batch &schedule();

  // The step was started: whatever runs on the device after it finds K and V of
  // its tokens in the cache.
  void advance(const Batch &batch);

  // Ends a request in any state: its blocks are free when this returns. With it
  // end all of its beam search.
  void finish(Request &request);

  // The beams of a search go on as `choices` say, of which there is at least
  // one. No step that has tokens of them is in flight.
  void continue_beams(BeamGroup &group,
                      std::span<const BeamSearch::Choice> choices);

  // A step failed: what lies in the cache is unknown. Requests that still run
  // go back to those that wait, and all of them begin anew.
  void forget_cache();

  // Drops what finish() ended from the queues. Batches refer to requests: they
  // live on until forget_removed() was called twice.
  void remove_finished();
  void forget_removed();

  // Both in order of rank.
  const std::vector<RequestPtr> &running() const { return running_; }
  const std::deque<RequestPtr> &waiting() const { return waiting_; }
  bool has_work() const { return !running_.empty() || !waiting_.empty(); }
  // Throws LLMC_INTERNAL when the KV cache and the requests disagree.
  // O(blocks).
  void check() const;

  int64_t num_preemptions() const { return num_preemptions_; }

private:
  bool schedule_running(Request &request, Batch &batch);
  void admit_waiting(Batch &batch);
  bool admit(Request &request);
  int missing_blocks(const Request &request,
                     const KvCacheManager::Prefix &prefix) const;
  void start(const RequestPtr &request, Batch &batch);
  bool is_in_step(const Request &request) const;
  void preempt(Request &victim);
  void requeue(Request &request);
  int num_seats() const {
    return static_cast<int>(running_.size()) + kept_seats_;
  }
  int spare_rows(const Batch &batch) const;
  void add_to_batch(Request &request, int num_tokens, Batch &batch);
  bool preempt_last(const Batch &batch, const Request &keep);

  const SchedulerConfig config_;
  KvCacheManager &kv_cache_;
  std::vector<RequestPtr> running_;
  std::vector<Request *> order_; // running_ as a step began
  Batch batches_[2];             // both kept to avoid allocation
  std::vector<RequestPtr> removed_, removed_before_;
  std::deque<RequestPtr> waiting_;
  int64_t num_arrivals_ = 0;
  uint64_t step_ = 0;
  int64_t reserved_blocks_ = 0; // worst case of all running requests
  int kept_seats_ = 0;          // for beams that do not run yet
  int64_t num_preemptions_ = 0;
  bool any_finished_ = false;
};

} // namespace llmc
