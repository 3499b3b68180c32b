#include "scheduler.h"

#include "error.h"

#include <algorithm>
#include <utility>

namespace llmc {

namespace {

void insert_by_rank(auto &queue, Scheduler::RequestPtr request) {
  auto place = std::upper_bound(
      queue.begin(), queue.end(), request,
      [](const auto &a, const auto &b) { return a->goes_before(*b); });
  queue.insert(place, std::move(request));
}

void sort_by_rank(auto &queue) {
  std::sort(queue.begin(), queue.end(),
            [](const auto &a, const auto &b) { return a->goes_before(*b); });
}

bool shares_prompt(const Request &request) {
  // Tokens that are not computed have no log probabilities.
  return request.leader && request.leader->state == Request::State::Running &&
         !request.wants_prompt_logprobs();
}

bool has_prompt(const Request &leader) { // but perhaps its last token
  return leader.sequence.num_computed_tokens + 1 >=
         leader.sequence.num_prompt_tokens;
}

} // namespace

void Scheduler::add(RequestPtr request) {
  const int64_t arrival = num_arrivals_++;
  const int priority = request->priority;
  for_each_member(*request, [&](Request &member) {
    member.arrival = arrival;
    member.priority = priority;
    member.needs_host = needs_host(member.params);
    member.rank = arrival + priority * kPriorityWindow;
  });
  insert_by_rank(waiting_, std::move(request));
}

void Scheduler::set_priority(Request &request, int priority) {
  if (request.state == Request::State::Finished)
    return;
  for_each_member(request, [&](Request &member) {
    member.priority = priority;
    member.rank = member.arrival + priority * kPriorityWindow;
  });
  sort_by_rank(waiting_);
  sort_by_rank(running_);
}

const Batch &Scheduler::schedule() {
  Batch &batch = batches_[++step_ % 2];
  batch.clear();
  batch.slot = static_cast<int>(step_ % 2);
  // Decodes first: a prompt being computed in chunks takes what is left of the
  // budget, and so cannot starve them. Over a copy of the order, because
  // preemption shortens running_.
  order_.clear();
  for (const RequestPtr &request : running_)
    order_.push_back(request.get());
  bool all_served = true;
  for (bool decode : {true, false})
    for (Request *request : order_)
      if (request->state == Request::State::Running &&
          (request->sequence.num_uncomputed_tokens() == 1) == decode)
        all_served &= schedule_running(*request, batch);

  // Nobody new joins while a running request could not get its blocks: the
  // newcomer would take them for good.
  if (all_served)
    admit_waiting(batch);
  if (!batch.empty())
    kv_cache_.take_copies(batch.copies);
  return batch;
}

void Scheduler::admit_waiting(Batch &batch) {
  const bool is_static = config_.policy == LLMC_STATIC_BATCH;
  // A static batch runs to its end as it is; forks of it are a part of it.
  const bool only_forks = is_static && !running_.empty();
  for (size_t next = 0;
       next < waiting_.size() && num_seats() < config_.max_batch_size &&
       (is_static || batch.num_tokens < config_.max_num_tokens) &&
       spare_rows(batch) > 0;) {
    RequestPtr request = waiting_[next];
    const bool is_fork = shares_prompt(*request);
    if (is_fork ? !has_prompt(*request->leader) : only_forks) {
      ++next;
      continue;
    }
    if (!admit(*request))
      break; // nobody overtakes a request that waits for seats or blocks
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(next));
    start(request, batch);
  }
}

void Scheduler::start(const RequestPtr &request, Batch &batch) {
  auto run = [&](const RequestPtr &one) {
    one->state = Request::State::Running;
    insert_by_rank(running_, one);
  };
  if (!request->group) {
    run(request);
    schedule_running(*request, batch);
    return;
  }
  BeamGroup &group = *request->group;
  kept_seats_ += static_cast<int>(group.members.size() - group.num_beams);
  for (size_t i = 0; i < group.num_beams; ++i) {
    Sequence &sequence = group.members[i]->sequence;
    if (i > 0)
      kv_cache_.use_prefix(sequence, kv_cache_.find_prefix(sequence));
    run(group.members[i]);
  }
  for (size_t i = 0; i < group.num_beams; ++i)
    if (group.members[i]->state == Request::State::Running)
      schedule_running(*group.members[i], batch);
}

// False when the pool had no blocks for it.
bool Scheduler::schedule_running(Request &request, Batch &batch) {
  if (request.is_complete())
    return true; // its last token is pending
  int num_tokens = std::min(request.sequence.num_uncomputed_tokens(),
                            config_.max_num_tokens - batch.num_tokens);
  if (request.wants_prompt_logprobs()) // a row for each token
    num_tokens = std::min(num_tokens, spare_rows(batch));
  if (num_tokens <= 0)
    return true;
  bool was_full = false;
  while (!kv_cache_.allocate_slots(request.sequence, num_tokens)) {
    was_full = true;
    if (!preempt_last(batch, request))
      return false; // it keeps its blocks and tries again next step
    if (request.state != Request::State::Running)
      return false;
  }
  add_to_batch(request, num_tokens, batch);
  return !was_full;
}

// Logit rows that one more request may take when each running one without
// tokens in the step so far still gets one.
int Scheduler::spare_rows(const Batch &batch) const {
  int others = static_cast<int>(running_.size()) - batch.size() - 1;
  return config_.max_logit_rows - static_cast<int>(batch.logit_rows.size()) -
         std::max(others, 0);
}

void Scheduler::add_to_batch(Request &request, int num_tokens, Batch &batch) {
  request.last_step = step_;
  const Sequence &sequence = request.sequence;
  batch.add(request.sequence, num_tokens, &request);
  batch.needs_host |= request.needs_host;
  if (request.wants_prompt_logprobs())
    for (int offset = 0; offset < num_tokens; ++offset)
      if (int position = sequence.num_computed_tokens + offset;
          position >= request.num_prompt_logprobs &&
          position + 1 < sequence.num_prompt_tokens)
        batch.want_prompt_logprob(offset, position);
  if (num_tokens < sequence.num_uncomputed_tokens())
    return; // without its last token, which may be pending
  if (sequence.num_pending_tokens > 0)
    batch.entries.back().pending_row = request.pending_row;
  batch.want_logits(num_tokens - 1, &request.params,
                    static_cast<uint32_t>(sequence.num_generated_tokens()),
                    request.rules.get());
}

// Takes the known beginning of its tokens from the cache.
bool Scheduler::admit(Request &request) {
  const BlockPool &pool = kv_cache_.pool();
  const int width =
      request.group ? static_cast<int>(request.group->members.size()) : 1;
  if (num_seats() + width > config_.max_batch_size)
    return false;
  // Tokens that are not computed have no logits.
  KvCacheManager::Prefix prefix;
  if (shares_prompt(request))
    prefix = kv_cache_.find_fork(request.sequence, request.leader->sequence);
  else if (!request.wants_prompt_logprobs())
    prefix = kv_cache_.find_prefix(request.sequence);
  if (config_.policy == LLMC_MAX_UTILIZATION) {
    // All it has to compute must fit, and one block more while others run, or
    // its first decode would evict somebody.
    int spare = running_.empty() ? 0 : 1;
    if (pool.num_free() < missing_blocks(request, prefix) + spare)
      return false;
  } else {
    // Shared blocks are counted for each: their other owners may end first.
    int worst_case = width * kv_cache_.blocks_for(request.max_cached_tokens());
    if (reserved_blocks_ + worst_case > pool.num_usable())
      return false;
    request.reserved_blocks = worst_case;
    reserved_blocks_ += worst_case;
  }
  kv_cache_.use_prefix(request.sequence, prefix);
  request.leader.reset();
  for_each_member(request, [&](Request &member) {
    member.stream->set_reused_tokens(request.sequence.num_reused_tokens);
  });
  return true;
}

// Free ones that it needs to begin: beside the known prefix, whose idle blocks
// are no longer free then. What the beams of a search find is not counted.
int Scheduler::missing_blocks(const Request &request,
                              const KvCacheManager::Prefix &prefix) const {
  if (!request.group || request.group->num_beams == 1)
    return kv_cache_.blocks_for(request.sequence.num_tokens()) -
           static_cast<int>(prefix.entries.size()) + prefix.num_idle;
  int missing = 0;
  for (size_t i = 0; i < request.group->num_beams; ++i)
    missing +=
        kv_cache_.blocks_for(request.group->members[i]->sequence.num_tokens());
  return missing;
}

// Takes the blocks of the last running request that is not part of the step
// yet and queues it by its rank; its tokens are kept, and computed again if
// host memory has no room for their K and V. `keep` itself is taken last: only
// when it is the last one left.
bool Scheduler::preempt_last(const Batch &batch, const Request &keep) {
  for (size_t i = running_.size(); i-- > 0;) {
    Request &victim = *running_[i];
    if (is_in_step(victim))
      continue;
    // Giving up itself helps only if others go on; alone, it fits by admission.
    const bool is_itself =
        &victim == &keep || (keep.group && victim.group == keep.group);
    if (is_itself && batch.empty())
      return false;
    preempt(victim);
    return true;
  }
  return false;
}

bool Scheduler::is_in_step(const Request &request) const {
  if (!request.group)
    return request.last_step == step_;
  return std::ranges::any_of(
      request.group->members,
      [&](const RequestPtr &member) { return member->last_step == step_; });
}

void Scheduler::preempt(Request &victim) {
  for_each_member(victim, [&](Request &member) {
    kv_cache_.swap_out(member.sequence);
    ++member.num_preemptions;
  });
  requeue(victim);
  ++num_preemptions_;
}

// From those that run to those that wait. Blocks are the caller's.
void Scheduler::requeue(Request &request) {
  RequestPtr head;
  std::erase_if(running_, [&](const RequestPtr &one) {
    if (one.get() != &request &&
        !(request.group && one->group == request.group))
      return false;
    one->state = Request::State::Waiting;
    if (one->is_head())
      head = one;
    return true;
  });
  if (const BeamGroup *group = request.group.get())
    kept_seats_ -= static_cast<int>(group->members.size() - group->num_beams);
  insert_by_rank(waiting_, std::move(head));
}

void Scheduler::forget_cache() {
  kv_cache_.forget_prefixes();
  auto forget = [&](Request &request) {
    kv_cache_.free(request.sequence);
    reserved_blocks_ -= std::exchange(request.reserved_blocks, 0);
  };
  for (const RequestPtr &request : waiting_)
    for_each_member(*request, forget);
  for (const RequestPtr &request : std::vector(running_))
    if (request->state == Request::State::Running) {
      for_each_member(*request, forget);
      requeue(*request);
    }
}

void Scheduler::advance(const Batch &batch) {
  for (const BatchEntry &entry : batch.entries)
    kv_cache_.advance(*entry.sequence, entry.num_tokens);
}

void Scheduler::finish(Request &request) {
  if (request.state == Request::State::Finished)
    return;
  any_finished_ = true;
  // A beam that has not come about does not run, though its search does.
  const bool runs = request.state == Request::State::Running ||
                    (request.group && request.group->members.front()->state ==
                                          Request::State::Running);
  for_each_member(request, [&](Request &member) {
    kv_cache_.free(member.sequence);
    reserved_blocks_ -= std::exchange(member.reserved_blocks, 0);
    member.state = Request::State::Finished;
  });
  if (BeamGroup *group = request.group.get()) {
    if (runs)
      kept_seats_ -= static_cast<int>(group->members.size() - group->num_beams);
    // Not all are in a queue, and `request` may be known through this only.
    removed_.insert(removed_.end(), group->members.begin(),
                    group->members.end());
    group->members.clear();
  }
}

void Scheduler::remove_finished() {
  if (!any_finished_)
    return;
  any_finished_ = false;
  auto clean = [&](auto &queue) {
    auto kept = queue.begin();
    for (RequestPtr &request : queue)
      if (request->state == Request::State::Finished)
        removed_.push_back(std::move(request));
      else
        std::swap(*kept++, request);
    queue.erase(kept, queue.end());
  };
  clean(running_);
  clean(waiting_);
}

void Scheduler::check() const {
  std::vector<const Sequence *> sequences;
  int64_t reserved = 0;
  auto collect = [&](const Request &request) {
    sequences.push_back(&request.sequence);
    reserved += request.reserved_blocks;
  };
  int64_t seats = 0;
  for (const RequestPtr &request : running_) {
    collect(*request);
    if (request->group && request->is_head())
      seats += static_cast<int64_t>(request->group->members.size() -
                                    request->group->num_beams);
  }
  for (const RequestPtr &request : waiting_)
    for_each_member(*request, collect);
  kv_cache_.check(sequences);
  if (seats != kept_seats_)
    fail(LLMC_INTERNAL, kept_seats_, " seats are kept, ", seats,
         " for somebody");
  if (reserved != reserved_blocks_)
    fail(LLMC_INTERNAL, reserved_blocks_, " KV blocks are promised, ", reserved,
         " to somebody");
}

void Scheduler::forget_removed() {
  removed_before_.clear();
  removed_before_.swap(removed_);
}

} // namespace llmc
