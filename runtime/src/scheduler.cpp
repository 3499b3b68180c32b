#include "scheduler.h"

#include <algorithm>

namespace llmc {

void Scheduler::add(std::shared_ptr<Request> request) {
  waiting_.push_back(std::move(request));
}

const Batch &Scheduler::schedule() {
  Batch &batch = batch_;
  batch.clear();
  // Decodes first: a prompt being computed in chunks takes what is left of the
  // budget, and so cannot starve them. Over a copy of the order, because
  // preemption shortens running_.
  order_ = running_;
  bool all_served = true;
  for (bool decode : {true, false})
    for (const auto &request : order_)
      if (request->state == Request::State::Running &&
          (request->sequence.num_uncomputed_tokens() == 1) == decode)
        all_served &= schedule_running(*request, batch);

  order_.clear(); // it must not keep a request alive that ends

  // Nobody new joins while a running request could not get its blocks: the
  // newcomer would take them for good.
  while (all_served && !waiting_.empty() &&
         static_cast<int>(running_.size()) < config_.max_batch_size &&
         batch.num_tokens < config_.max_num_tokens) {
    std::shared_ptr<Request> request = waiting_.front();
    if (!admit(*request))
      break; // first come, first served: nobody overtakes a request that waits
             // for blocks
    waiting_.pop_front();
    running_.push_back(request);
    request->state = Request::State::Running;
    schedule_running(*request, batch);
  }
  return batch;
}

// False when the pool had no blocks for it.
bool Scheduler::schedule_running(Request &request, Batch &batch) {
  int num_tokens = std::min(request.sequence.num_uncomputed_tokens(),
                            config_.max_num_tokens - batch.num_tokens);
  if (num_tokens <= 0)
    return true;
  bool was_full = false;
  while (!kv_cache_.allocate_slots(request.sequence, num_tokens)) {
    was_full = true;
    if (!preempt_youngest(batch, request))
      return false; // it keeps its blocks and tries again next step
    if (request.state != Request::State::Running)
      return false;
  }
  add_to_batch(request, num_tokens, batch);
  return !was_full;
}

void Scheduler::add_to_batch(Request &request, int num_tokens, Batch &batch) {
  batch.add(request.sequence, num_tokens, &request);
  if (num_tokens == request.sequence.num_uncomputed_tokens())
    batch.want_logits(
        num_tokens - 1, &request.params,
        static_cast<uint32_t>(request.sequence.num_generated_tokens()));
}

bool Scheduler::admit(Request &request) {
  const BlockPool &pool = kv_cache_.pool();
  if (config_.policy == LLMC_GUARANTEED_NO_EVICT) {
    int worst_case = kv_cache_.blocks_for(request.max_cached_tokens());
    if (reserved_blocks_ + worst_case > pool.num_usable())
      return false;
    request.reserved_blocks = worst_case;
    reserved_blocks_ += worst_case;
    return true;
  }
  // All it has to compute must fit, and one block more while others run, or its
  // first decode would evict somebody.
  int spare = running_.empty() ? 0 : 1;
  return pool.num_free() >=
         kv_cache_.blocks_for(request.sequence.num_tokens()) + spare;
}

// Takes the blocks of the youngest running request that is not part of the step
// yet and queues it first; its tokens are kept and computed again. `keep`
// itself is taken last: only when it is the youngest left.
bool Scheduler::preempt_youngest(const Batch &batch, const Request &keep) {
  for (size_t i = running_.size(); i-- > 0;) {
    Request &victim = *running_[i];
    bool in_batch = std::any_of(
        batch.entries.begin(), batch.entries.end(),
        [&](const BatchEntry &entry) { return entry.request == &victim; });
    if (in_batch)
      continue;
    // Giving up itself helps only if others go on; alone, it fits by admission.
    if (&victim == &keep && batch.empty())
      return false;
    kv_cache_.free(victim.sequence);
    victim.state = Request::State::Waiting;
    waiting_.push_front(running_[i]);
    running_.erase(running_.begin() + static_cast<ptrdiff_t>(i));
    ++num_preemptions_;
    return true;
  }
  return false;
}

void Scheduler::finish(Request &request) {
  kv_cache_.free(request.sequence);
  reserved_blocks_ -= request.reserved_blocks;
  request.reserved_blocks = 0;
  request.state = Request::State::Finished;
}

void Scheduler::remove_finished() {
  auto is_finished = [](const std::shared_ptr<Request> &request) {
    return request->state == Request::State::Finished;
  };
  std::erase_if(running_, is_finished);
  std::erase_if(waiting_, is_finished);
}

} // namespace llmc
