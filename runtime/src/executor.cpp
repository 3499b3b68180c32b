#include "executor.h"

#include "error.h"
#include "sampler.h"
#include "thread_pool.h"

#include <algorithm>
#include <chrono>

namespace llmc {

namespace {

class Stopwatch {
public:
  explicit Stopwatch(double &total)
      : total_(total), start_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() {
    total_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_)
            .count();
  }

private:
  double &total_;
  std::chrono::steady_clock::time_point start_;
};

} // namespace

Executor::Executor(StepRunner &runner, KvCacheManager &kv_cache,
                   const SchedulerConfig &config, const ModelInfo &model)
    : runner_(runner), kv_cache_(kv_cache), scheduler_(config, kv_cache),
      model_(model) {
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

void Executor::submit(std::shared_ptr<Request> request, int max_waiting) {
  {
    std::lock_guard lock(mutex_);
    if (max_waiting > 0 && published_.num_waiting >= max_waiting)
      fail(LLMC_REFUSED, published_.num_waiting,
           " requests wait already, max_waiting is ", max_waiting,
           "; try again later");
    incoming_.push_back(std::move(request));
    ++published_
          .num_waiting; // visible at once, not only after the running step
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
  GraphStats graphs = runner_.graph_stats();
  counters_.num_graphs = graphs.num_graphs;
  counters_.graph_launches = graphs.num_launches;
  std::lock_guard lock(mutex_);
  published_ = counters_;
  published_.num_waiting += static_cast<int64_t>(incoming_.size());
}

void Executor::loop() {
  while (wait_for_work()) {
    follow_callers();
    end_late();
    run_score_jobs();
    if (scheduler_.has_work())
      step();
  }
  end_all();
}

bool Executor::wait_for_work() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [&] {
    return stop_ || !incoming_.empty() || !score_jobs_.empty() ||
           scheduler_.has_work();
  });
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
      if (request->stream->cancelled())
        cancelled.push_back(request);
      else if (request->stream->priority() != request->priority)
        moved.push_back(request);
  };
  collect(scheduler_.running());
  collect(scheduler_.waiting());
  for (const auto &request : moved)
    scheduler_.set_priority(*request, request->stream->priority());
  end_all_of(cancelled, LLMC_FINISH_CANCELLED);
}

void Executor::end_late() {
  using Clock = std::chrono::steady_clock;
  if (next_deadline_ == Clock::time_point::max())
    return;
  Clock::time_point now = Clock::now();
  if (now < next_deadline_)
    return;
  next_deadline_ = Clock::time_point::max();
  std::vector<std::shared_ptr<Request>> late;
  auto collect = [&](const auto &queue) {
    for (const auto &request : queue)
      if (request->deadline <= now)
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
  for (const auto &request : requests)
    scheduler_.finish(*request);
  scheduler_.remove_finished();
  publish_stats(); // first, so that whoever sees the end also sees the blocks
                   // free
  for (const auto &request : requests)
    request->stream->finish(reason);
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
    try {
      Stopwatch watch(counters_.step_seconds);
      forward(job->sequences, job->limits, runner_, kv_cache_, job->logits);
      publish_stats();
      job->done.set_value();
    } catch (...) {
      job->done.set_exception(std::current_exception());
    }
  }
}

void Executor::step() {
  const Batch &batch = scheduler_.schedule();
  if (batch.empty())
    return;
  try {
    {
      Stopwatch watch(counters_.step_seconds);
      runner_.run(batch, kv_cache_);
      // Waits for a device that computes behind our back, so that the time is
      // the step's and not the sampler's.
      if (!batch.logit_rows.empty() && runner_.samples_on_device())
        runner_.next_tokens();
      else if (!batch.logit_rows.empty())
        runner_.logits(0);
    }
    Stopwatch watch(counters_.sample_seconds);
    sample(batch);
  } catch (const Error &error) {
    fail_batch(batch, error);
    return;
  } catch (const std::exception &error) {
    fail_batch(batch, Error(LLMC_INTERNAL, error.what()));
    return;
  }
  ++counters_.num_steps;
  counters_.consecutive_failed_steps = 0;

  for (const BatchEntry &entry : batch.entries)
    if (entry.sequence->num_computed_tokens <
            entry.sequence->num_prompt_tokens ||
        entry.num_tokens > 1)
      counters_.num_prompt_tokens += entry.num_tokens;
  scheduler_.advance(batch);
  emissions_.clear();
  for (size_t row = 0; row < batch.logit_rows.size(); ++row) {
    Request &request =
        *batch.entries[static_cast<size_t>(batch.logit_rows[row].entry)]
             .request;
    llmc_token token = sampled_[row];
    if (token.id < 0) {
      scheduler_.finish(request);
      failed_.push_back(request.stream);
      continue;
    }
    request.sequence.tokens.push_back(token.id);
    ++counters_.num_generated_tokens;
    llmc_finish finish = stop_reason(request, token.id);
    emissions_.push_back({request.stream.get(), token, finish});
    if (finish != LLMC_RUNNING) {
      keep_alive_.push_back(request.stream); // past remove_finished()
      scheduler_.finish(request);
    }
  }
  scheduler_.remove_finished();
  publish_stats();
  for (const Emission &emission : emissions_)
    emission.stream->push(emission.token, emission.finish);
  for (const auto &stream : failed_)
    stream->finish(LLMC_FINISH_ERROR,
                   Error(LLMC_DEVICE_ERROR,
                         "the model produced logits that are not numbers (NaN "
                         "or infinite); check the "
                         "engine with `llmc eval`, it may be damaged or its "
                         "precision too low"));
  keep_alive_.clear();
  failed_.clear();
}

void Executor::sample(const Batch &batch) {
  size_t rows = batch.logit_rows.size();
  sampled_.assign(rows, llmc_token{-1, 0});
  if (rows == 0)
    return;
  if (runner_.samples_on_device()) {
    std::span<const int32_t> ids = runner_.next_tokens();
    bool any_logprob = false;
    for (size_t i = 0; i < rows; ++i) {
      sampled_[i].id = ids[i];
      any_logprob |= batch.logit_rows[i].params->logprobs;
    }
    if (!any_logprob)
      return;
    for (size_t i = 0; i < rows; ++i)
      if (batch.logit_rows[i].params->logprobs && sampled_[i].id >= 0)
        sampled_[i].logprob =
            logprob_of(runner_.logits(static_cast<int>(i)), sampled_[i].id);
    return;
  }
  runner_.logits(0); // fetch before the threads share it
  runner_.thread_pool().parallel_for(
      static_cast<int64_t>(rows), [&](int64_t i) {
        thread_local Sampler sampler;
        const LogitRow &row = batch.logit_rows[static_cast<size_t>(i)];
        SampledToken token = sampler.sample(runner_.logits(static_cast<int>(i)),
                                            *row.params, row.sample_index);
        sampled_[static_cast<size_t>(i)] = {token.id, token.logprob};
      });
}

llmc_finish Executor::stop_reason(const Request &request, int32_t token) const {
  auto contains = [&](const std::vector<int32_t> &ids) {
    return std::find(ids.begin(), ids.end(), token) != ids.end();
  };
  if (!request.params.ignore_eos && contains(model_.eos_token_ids))
    return LLMC_FINISH_STOP;
  if (contains(request.params.stop_token_ids))
    return LLMC_FINISH_STOP;
  if (request.sequence.num_tokens() >= request.max_total_tokens)
    return LLMC_FINISH_LENGTH;
  return LLMC_RUNNING;
}

// The step's requests have an undefined cache now; everybody else goes on.
void Executor::fail_batch(const Batch &batch, const Error &error) {
  std::vector<std::shared_ptr<RequestStream>> streams;
  for (const BatchEntry &entry : batch.entries) {
    scheduler_.finish(*entry.request);
    streams.push_back(entry.request->stream);
  }
  scheduler_.remove_finished();
  // A device may report the failure of an earlier step only now.
  kv_cache_.forget_prefixes();
  ++counters_.num_failed_steps;
  ++counters_.consecutive_failed_steps;
  publish_stats();
  for (const auto &stream : streams)
    stream->finish(LLMC_FINISH_ERROR, error);
}

void Executor::end_all() {
  std::vector<std::shared_ptr<Request>> all(scheduler_.running().begin(),
                                            scheduler_.running().end());
  all.insert(all.end(), scheduler_.waiting().begin(),
             scheduler_.waiting().end());
  for (const auto &request : all)
    scheduler_.finish(*request);
  scheduler_.remove_finished();
  std::deque<std::shared_ptr<ScoreJob>> jobs;
  {
    std::lock_guard lock(mutex_);
    jobs.swap(score_jobs_);
  }
  publish_stats();
  for (const auto &request : all)
    request->stream->finish(LLMC_FINISH_CANCELLED);
  for (const auto &job : jobs)
    job->done.set_exception(std::make_exception_ptr(
        Error(LLMC_SHUT_DOWN, "the engine is closing")));
}

} // namespace llmc
