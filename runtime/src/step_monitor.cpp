#include "step_monitor.h"

namespace llmc {

StepMonitor::StepMonitor(StepRunner &runner, const std::string &trace_file)
    : runner_(runner) {
  if (trace_file.empty())
    return;
  trace_ = std::make_unique<TraceWriter>(trace_file);
  runner_.measure_device_times();
}

void StepMonitor::launched(const Batch &batch) {
  Step &here = step(batch);
  here.number = ++num_steps_;
  here.tokens = batch.num_tokens;
  here.sequences = batch.size();
  here.rows = static_cast<int>(batch.logit_rows.size());
  here.begin = begin_;
  here.scheduled = scheduled_;
  here.launched = Clock::now();
  for (const BatchEntry &entry : batch.entries)
    if (!entry.request->times.started) {
      entry.request->times.started = true;
      add(LLMC_METRIC_QUEUE, scheduled_ - entry.request->times.submitted);
    }
}

void StepMonitor::done(const Batch &batch) {
  phase_ = "handing out tokens";
  Step &here = step(batch);
  here.done = Clock::now();
  // The device goes from step to step: a step that was queued behind another
  // began when that one was done.
  add(LLMC_METRIC_STEP, here.done - std::max(done_, here.scheduled));
  done_ = here.done;
}

void StepMonitor::has_token(Request &request) {
  Request::Times &times = request.times;
  if (times.last_token == Clock::time_point{})
    add(LLMC_METRIC_FIRST_TOKEN, done_ - times.submitted);
  else
    add(LLMC_METRIC_INTER_TOKEN, done_ - times.last_token);
  times.last_token = done_;
}

void StepMonitor::emitted(const Batch &batch, const llmc_engine_stats &stats) {
  Clock::time_point now = Clock::now();
  Step &here = step(batch);
  Clock::duration host = (here.launched - here.begin) + (now - here.done);
  add(LLMC_METRIC_HOST, host);
  host_seconds_ += std::chrono::duration<double>(host).count();
  if (trace_)
    write_trace(batch, now, stats);
}

void StepMonitor::write_trace(const Batch &batch, Clock::time_point now,
                              const llmc_engine_stats &stats) {
  Step &here = step(batch);
  TraceWriter::StepArgs args{here.number, here.tokens, here.sequences,
                             here.rows};
  using Track = TraceWriter::Track;
  trace_->span(Track::Host, "schedule", here.begin, here.scheduled, args);
  trace_->span(Track::Host, "launch", here.scheduled, here.launched, args);
  trace_->span(Track::Host, "wait", here.waiting, here.done, args);
  trace_->span(Track::Host, "emit", here.done, now, args);
  if (auto times = runner_.device_times(batch.slot)) {
    trace_->span(Track::Device, "inputs", times->begin, times->kernels, args);
    trace_->span(Track::Device, "kernels", times->kernels, times->end, args);
  }
  trace_->counters(now, stats);
}

} // namespace llmc
