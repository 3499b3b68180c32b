#include "executor.h"

#include "error.h"
#include "stopwatch.h"

#include <algorithm>
#include <chrono>

namespace llmc {

Executor::Executor(StepRunner &runner, KvCacheManager &kv_cache,
                   const SchedulerConfig &config, const ModelInfo &model,
                   const ExecutorOptions &options)
    : runner_(runner), kv_cache_(kv_cache), scheduler_(config, kv_cache),
      model_(model), overlap_(options.overlap && runner.overlaps()),
      sampler_(runner), monitor_(runner, options.trace_file),
      watchdog_(options.stall_seconds,
                [this](double seconds) { on_stall(seconds); }) {
  publish_stats();
  thread_ = std::thread([this] { loop(); });
}

Executor::~Executor() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Executor::submit(std::vector<std::shared_ptr<Request>> requests,
                      int max_waiting) {
  const auto count = std::ranges::count_if(
      requests, [](const auto &request) { return request->is_head(); });
  for (const auto &request : requests)
    request->times.submitted = Clock::now();
  {
    std::lock_guard lock(mutex_);
    check_usable();
    if (max_waiting > 0 && published_.num_waiting + count > max_waiting)
      fail(LLMC_REFUSED, published_.num_waiting,
           " requests wait already, max_waiting is ", max_waiting,
           "; try again later");
    for (auto &request : requests) {
      remember(request->stream);
      if (request->is_head()) {
        incoming_.push_back(std::move(request));
        // Visible at once, not only after the running step.
        ++published_.num_waiting;
      }
    }
  }
  wake_.notify_all();
}

void Executor::score(std::span<const ForwardSequence> sequences,
                     const ForwardLimits &limits, float *logits) {
  size_t longest = 0;
  for (const ForwardSequence &sequence : sequences)
    longest = std::max(longest, sequence.tokens.size());
  auto job = std::make_shared<ScoreJob>(
      ScoreJob{sequences,
               limits,
               logits,
               kv_cache_.blocks_for(static_cast<int64_t>(longest)),
               {}});
  {
    std::lock_guard lock(mutex_);
    if (stop_)
      fail(LLMC_SHUT_DOWN, "the engine is closing");
    check_usable();
    score_jobs_.push_back(job);
  }
  wake_.notify_all();
  job->done.get_future().get();
}

llmc_engine_stats Executor::stats() const {
  std::lock_guard lock(mutex_);
  return published_;
}

void Executor::publish_stats() {
  counters_.num_running = static_cast<int64_t>(scheduler_.running().size());
  counters_.num_waiting = static_cast<int64_t>(scheduler_.waiting().size());
  counters_.blocks_used = kv_cache_.pool().num_used();
  counters_.blocks_total = kv_cache_.pool().num_usable();
  counters_.num_preemptions = scheduler_.num_preemptions();
  counters_.blocks_idle = kv_cache_.pool().num_idle();
  counters_.num_evictions = kv_cache_.pool().num_evictions();
  counters_.num_looked_up_tokens = kv_cache_.prefix_stats().looked_up_tokens;
  counters_.num_reused_tokens = kv_cache_.prefix_stats().reused_tokens;
  const PrefixStats &prefixes = kv_cache_.prefix_stats();
  counters_.num_partially_reused_tokens = prefixes.partial_tokens;
  counters_.num_forks = prefixes.forks;
  counters_.host_blocks_used = kv_cache_.host().num_used();
  counters_.host_blocks_total = kv_cache_.host().num_total();
  counters_.num_blocks_swapped_out = kv_cache_.swap_stats().blocks_out;
  counters_.num_blocks_swapped_in = kv_cache_.swap_stats().blocks_in;
  counters_.host_seconds = monitor_.host_seconds();
  GraphStats graphs = runner_.graph_stats();
  counters_.num_graphs = graphs.num_graphs;
  counters_.graph_launches = graphs.num_launches;
  counters_.num_host_sampled = sampler_.num_host_sampled();
  std::lock_guard lock(mutex_);
  published_ = counters_;
  published_.num_waiting += static_cast<int64_t>(incoming_.size());
}

void Executor::loop() {
  try {
    serve();
  } catch (const std::exception &error) {
    give_up(as_error(error));
  }
}

void Executor::serve() {
  watchdog_.busy(); // there may be work already
  while (wait_for_work()) {
    follow_callers();
    end_late();
    run_score_jobs();
    if (scheduler_.has_work())
      step();
    else if (in_flight_)
      complete_in_flight(); // of requests that were cancelled meanwhile
    if (std::string reason = runner_.why_lost(); !reason.empty())
      fail(LLMC_DEVICE_ERROR, "the device cannot be used any more: ", reason);
    if (!in_flight_) { // no batch refers to requests that have ended
      scheduler_.forget_removed();
      scheduler_.forget_removed();
    }
    check_books();
  }
  end_all();
}

bool Executor::wait_for_work() {
  std::unique_lock lock(mutex_);
  auto has_work = [&] {
    return stop_ || !incoming_.empty() || !score_jobs_.empty() ||
           scheduler_.has_work() || in_flight_;
  };
  if (!has_work()) {
    monitor_.enter("waiting for requests");
    watchdog_.idle();
    stalled_.clear();
    wake_.wait(lock, has_work);
    watchdog_.busy();
  }
  for (auto &request : incoming_) {
    request->priority = request->stream->priority();
    next_deadline_ = std::min(next_deadline_, request->deadline);
    scheduler_.add(std::move(request));
  }
  incoming_.clear();
  return !stop_;
}

// Cancels and changes of priority.
void Executor::follow_callers() {
  uint64_t now = attention_->load();
  if (now == attention_seen_)
    return;
  attention_seen_ = now;
  std::vector<std::shared_ptr<Request>> cancelled, moved;
  auto collect = [&](const auto &queue) {
    for (const auto &request : queue)
      if (bool is_cancelled = false; request->is_head()) { // for all beams
        for_each_member(*request, [&](const Request &member) {
          is_cancelled |= member.stream->cancelled();
        });
        if (is_cancelled)
          cancelled.push_back(request);
        else if (request->stream->priority() != request->priority)
          moved.push_back(request);
      }
  };
  collect(scheduler_.running());
  collect(scheduler_.waiting());
  for (const auto &request : moved)
    scheduler_.set_priority(*request, request->stream->priority());
  end_all_of(cancelled, LLMC_FINISH_CANCELLED);
}

void Executor::end_late() {
  if (next_deadline_ == Clock::time_point::max())
    return;
  Clock::time_point now = Clock::now();
  if (now < next_deadline_)
    return;
  next_deadline_ = Clock::time_point::max();
  std::vector<std::shared_ptr<Request>> late;
  auto collect = [&](const auto &queue) {
    for (const auto &request : queue)
      if (request->deadline <= now && request->is_head())
        late.push_back(request);
      else
        next_deadline_ = std::min(next_deadline_, request->deadline);
  };
  collect(scheduler_.running());
  collect(scheduler_.waiting());
  counters_.num_deadlines_missed += static_cast<int64_t>(late.size());
  end_all_of(late, LLMC_FINISH_DEADLINE);
}

void Executor::end_all_of(const std::vector<std::shared_ptr<Request>> &requests,
                          llmc_finish reason) {
  if (requests.empty())
    return;
  std::vector<std::shared_ptr<RequestStream>> streams;
  for (const auto &request : requests) {
    for_each_member(*request,
                    [&](Request &member) { streams.push_back(member.stream); });
    scheduler_.finish(*request);
  }
  scheduler_.remove_finished();
  publish_stats(); // first, so that whoever sees the end also sees the blocks
                   // free
  for (const auto &stream : streams)
    stream->finish(reason);
}

void Executor::run_score_jobs() {
  for (;;) {
    std::shared_ptr<ScoreJob> job;
    {
      std::lock_guard lock(mutex_);
      if (score_jobs_.empty())
        return;
      // Running requests end some time and give their blocks back; then there
      // is room, or submission was refused.
      if (kv_cache_.pool().num_free() < score_jobs_.front()->blocks_needed)
        return;
      job = std::move(score_jobs_.front());
      score_jobs_.pop_front();
    }
    if (in_flight_)
      complete_in_flight();
    try {
      monitor_.enter("scoring");
      Stopwatch watch(counters_.step_seconds);
      forward(job->sequences, job->limits, runner_, kv_cache_, job->logits);
      publish_stats();
      has_moved();
      job->done.set_value();
    } catch (...) {
      scheduler_.forget_cache(); // it had copies of others to make
      job->done.set_exception(std::current_exception());
    }
  }
}

void Executor::end_all(const std::optional<Error> &error) {
  std::vector<std::shared_ptr<Request>> all(scheduler_.running().begin(),
                                            scheduler_.running().end());
  all.insert(all.end(), scheduler_.waiting().begin(),
             scheduler_.waiting().end());
  std::vector<std::shared_ptr<RequestStream>> streams;
  for (const auto &request : all) {
    for_each_member(*request,
                    [&](Request &member) { streams.push_back(member.stream); });
    scheduler_.finish(*request);
  }
  scheduler_.remove_finished();
  std::deque<std::shared_ptr<ScoreJob>> jobs;
  {
    std::lock_guard lock(mutex_);
    jobs.swap(score_jobs_);
  }
  publish_stats();
  for (const auto &stream : streams)
    stream->finish(error ? LLMC_FINISH_ERROR : LLMC_FINISH_CANCELLED, error);
  for (const auto &job : jobs)
    job->done.set_exception(std::make_exception_ptr(
        error ? *error : Error(LLMC_SHUT_DOWN, "the engine is closing")));
}

} // namespace llmc
