#pragma once
// What the executor tells about its steps: histograms for operators, and a
// trace of each step for whoever looks for lost time.

#include "batch.h"
#include "histogram.h"
#include "llmc/monitoring.h"
#include "request.h"
#include "step_runner.h"
#include "trace_writer.h"

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>

namespace llmc {

class StepMonitor {
public:
  using Clock = std::chrono::steady_clock;

  // trace_file: empty: no trace. Throws LLMC_INVALID_ARGUMENT when it cannot be
  // written.
  StepMonitor(StepRunner &runner, const std::string &trace_file);

  // In this order for each step; at most two at a time. The executor's thread.
  void schedule_begins() {
    phase_ = "scheduling a step";
    begin_ = Clock::now();
  }
  void launch_begins() {
    phase_ = "starting a step";
    scheduled_ = Clock::now();
  }
  void launched(const Batch &batch);
  void wait_begins(const Batch &batch) {
    phase_ = "waiting for a step";
    step(batch).waiting = Clock::now();
  }
  void done(const Batch &batch);
  void has_token(Request &request); // of the step that was done last
  void emitted(const Batch &batch, const llmc_engine_stats &stats);

  // Where the executor is; any thread may ask.
  const char *phase() const { return phase_; }
  void enter(const char *phase) { phase_ = phase; }

  double host_seconds() const { return host_seconds_; } // of all steps

  const Histogram &histogram(llmc_metric metric) const {
    return histograms_[static_cast<size_t>(metric)];
  }

private:
  struct Step {
    int64_t number = 0;
    int tokens = 0, sequences = 0, rows = 0;
    Clock::time_point begin, scheduled, launched, waiting, done;
  };

  Step &step(const Batch &batch) {
    return steps_[static_cast<size_t>(batch.slot)];
  }
  void add(llmc_metric metric, Clock::duration time) {
    histograms_[static_cast<size_t>(metric)].add(
        std::chrono::duration<double>(time).count());
  }
  void write_trace(const Batch &batch, Clock::time_point now,
                   const llmc_engine_stats &stats);

  StepRunner &runner_;
  std::atomic<const char *> phase_{"its start"};
  std::array<Histogram, LLMC_NUM_METRICS> histograms_;
  std::unique_ptr<TraceWriter> trace_;
  Step steps_[2];
  int64_t num_steps_ = 0;
  Clock::time_point begin_, scheduled_, done_;
  double host_seconds_ = 0;
};

} // namespace llmc
