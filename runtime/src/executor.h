#pragma once
// The thread that owns the device: schedule, run, sample, append, emit; again.
// Nobody else touches scheduler, KV cache or model runner after the start.

#include "forward.h"
#include "request.h"
#include "row_sampler.h"
#include "scheduler.h"
#include "step_monitor.h"
#include "step_runner.h"
#include "watchdog.h"

#include <condition_variable>
#include <deque>
#include <future>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace llmc {

struct ExecutorOptions {
  // Start a step while the one before runs, when the runner can.
  bool overlap = true;
  std::string trace_file; // empty: none
  // Requests fail when nothing moves for so long; 0: never.
  double stall_seconds = 0;
};

class Executor {
public:
  Executor(StepRunner &runner, KvCacheManager &kv_cache,
           const SchedulerConfig &config, const ModelInfo &model,
           const ExecutorOptions &options = {});
  ~Executor(); // ends everything with LLMC_FINISH_CANCELLED and joins

  // All or none. Throws LLMC_REFUSED when more than max_waiting (0: no limit)
  // requests would wait.
  void submit(std::vector<std::shared_ptr<Request>> requests,
              int max_waiting = 0);
  void submit(std::shared_ptr<Request> request, int max_waiting = 0) {
    submit(std::vector{std::move(request)}, max_waiting);
  }

  // Runs scoring between two steps and returns when it is done.
  void score(std::span<const ForwardSequence> sequences,
             const ForwardLimits &limits, float *logits);

  llmc_engine_stats stats() const;

  // Throws why no request can be served at the moment, or any more.
  void check_health() const;

  const Histogram &histogram(llmc_metric metric) const {
    return monitor_.histogram(metric);
  }

  // For the streams of requests that are submitted here.
  std::shared_ptr<Attention> attention() const { return attention_; }

private:
  using Clock = std::chrono::steady_clock;

  struct ScoreJob {
    std::span<const ForwardSequence> sequences;
    ForwardLimits limits;
    float *logits;
    int blocks_needed;
    std::promise<void> done;
  };
  struct Emission { // held back until blocks are free and the statistics say so
    RequestStream *stream;
    OutputToken token; // of id -1: none, only the end
    llmc_finish finish;
  };

  void loop();
  void serve();
  bool wait_for_work(); // false: stop
  void follow_callers();
  void end_late();
  void end_all_of(const std::vector<std::shared_ptr<Request>> &requests,
                  llmc_finish reason);
  void run_score_jobs();

  // executor_step.cpp
  void step();
  bool launch(const Batch &batch);
  bool complete(const Batch &batch);
  void complete_in_flight();
  void wait_for(const Batch &batch);
  void append(Request &request, RowSampler::Outcome &outcome);
  // executor_beams.cpp
  void take_offer(Request &beam, RowSampler::Outcome &outcome);
  void end_search(const std::shared_ptr<BeamGroup> &group);
  llmc_finish stop_reason(const Request &request, int32_t token) const;
  void fail_batches(std::initializer_list<const Batch *> batches,
                    const Error &error);
  void check_books();
  static Request &request_of(const Batch &batch, size_t row);
  static Error as_error(const std::exception &error);

  // executor_health.cpp
  void check_usable() const;
  void remember(const std::shared_ptr<RequestStream> &stream);
  void give_up(const Error &error);
  void on_stall(double seconds);
  void has_moved();

  void end_all(const std::optional<Error> &error = std::nullopt);
  void publish_stats();

  StepRunner &runner_;
  KvCacheManager &kv_cache_;
  Scheduler scheduler_;
  const ModelInfo &model_;
  const bool overlap_;
  RowSampler sampler_;
  const Batch *in_flight_ = nullptr; // started, its tokens not known yet
  Clock::time_point busy_since_;     // the device has had work
  StepMonitor monitor_;
  std::vector<Emission> emissions_; // only grows, so that a step allocates
                                    // nothing
  std::vector<std::pair<RequestStream *, Error>> failed_;
  llmc_engine_stats counters_{}; // executor thread only
  const std::shared_ptr<Attention> attention_ = std::make_shared<Attention>(0);
  uint64_t attention_seen_ = 0;
  Clock::time_point checked_; // the KV cache's books were
  // No deadline lies before this one; those of ended requests may count.
  Clock::time_point next_deadline_ = Clock::time_point::max();

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::deque<std::shared_ptr<Request>> incoming_;
  std::deque<std::shared_ptr<ScoreJob>> score_jobs_;
  llmc_engine_stats published_{};
  std::vector<std::weak_ptr<RequestStream>> streams_; // of unfinished requests
  size_t max_streams_ = 64; // then those that have ended are forgotten
  std::optional<Error> lost_;
  std::string stalled_, last_error_; // empty: it moves; of the last failed step

  Watchdog watchdog_;

  std::thread thread_; // last: it uses all of the above
};

} // namespace llmc
