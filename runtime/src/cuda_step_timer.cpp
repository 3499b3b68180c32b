#include "cuda_step_timer.h"

namespace llmc::cuda {

StepTimer::StepTimer(const Driver &driver, Stream stream)
    : driver_(driver), stream_(stream) {
  auto create = [&](Event &event) {
    driver_.check(driver_.cuEventCreate(&event, 0), "cannot create an event");
  };
  create(base_);
  for (Events &events : ring_)
    create(events.begin), create(events.kernels), create(events.end);
  record(base_);
  driver_.check(driver_.cuEventSynchronize(base_), "cannot wait for an event");
  base_time_ = std::chrono::steady_clock::now();
}

StepTimer::~StepTimer() {
  driver_.cuEventDestroy_v2(base_);
  for (Events &events : ring_)
    for (Event event : {events.begin, events.kernels, events.end})
      driver_.cuEventDestroy_v2(event);
}

void StepTimer::record(Event event) {
  driver_.check(driver_.cuEventRecord(event, stream_),
                "cannot record an event");
}

double StepTimer::seconds(Event from, Event to) {
  float milliseconds = 0;
  driver_.check(driver_.cuEventElapsedTime(&milliseconds, from, to),
                "cannot read the time between two events");
  return milliseconds * 1e-3;
}

void StepTimer::begin() { record(events(++step_).begin); }
void StepTimer::kernels() { record(events(step_).kernels); }
void StepTimer::end(int slot) {
  record(events(step_).end);
  of_slot_[slot] = step_;
}

DeviceTimes StepTimer::read(int slot) {
  int64_t step = of_slot_[slot];
  Events &here = events(step);
  // The driver gives milliseconds in 24 bits: from step to step that is exact,
  // from the base on it is not for long.
  bool follows = last_step_ > 0 && step - last_step_ < kKept - 1;
  double begin = follows
                     ? last_end_ + seconds(events(last_step_).end, here.begin)
                     : seconds(base_, here.begin);
  double kernels = begin + seconds(here.begin, here.kernels);
  last_end_ = kernels + seconds(here.kernels, here.end);
  last_step_ = step;
  auto time = [&](double seconds) {
    return base_time_ +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(
               std::chrono::duration<double>(seconds));
  };
  return {time(begin), time(kernels), time(last_end_)};
}

} // namespace llmc::cuda
