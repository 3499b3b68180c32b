#pragma once
// When each step began and ended on the device, by events in its stream.

#include "cuda_driver.h"
#include "device_times.h"

#include <cstdint>

namespace llmc::cuda {

class StepTimer {
public:
  // Waits for the stream once, to compare the device's clock with the host's.
  StepTimer(const Driver &driver, Stream stream);
  ~StepTimer();
  StepTimer(const StepTimer &) = delete;

  void begin();   // a step is queued from here on: first its inputs,
  void kernels(); // then its launches
  void end(int slot);

  // Of the step that ended with `slot` last, which is done.
  DeviceTimes read(int slot);

private:
  // So many steps keep their events: one is read while the next may run.
  static constexpr int64_t kKept = 4;
  struct Events {
    Event begin = nullptr, kernels = nullptr, end = nullptr;
  };
  Events &events(int64_t step) { return ring_[step % kKept]; }
  void record(Event event);
  double seconds(Event from, Event to);

  const Driver &driver_;
  const Stream stream_;
  Event base_ = nullptr;
  std::chrono::steady_clock::time_point base_time_;
  Events ring_[kKept];
  int64_t step_ = 0, of_slot_[2] = {};
  int64_t last_step_ = 0; // that was read; 0: none
  double last_end_ = 0;   // seconds after base_
};

} // namespace llmc::cuda
