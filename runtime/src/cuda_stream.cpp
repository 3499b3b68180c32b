#include "cuda_stream.h"

#include "error.h"

#include <chrono>
#include <thread>

namespace llmc::cuda {

WatchedStream::WatchedStream(const Driver &driver, double stall_seconds)
    : driver_(driver), stall_seconds_(stall_seconds) {
  driver_.check(driver_.cuStreamCreate(&stream_, kStreamNonBlocking),
                "cannot create a stream");
}

// Of a device that stands still nothing is given back: that would wait for it.
WatchedStream::~WatchedStream() {
  if (stalled_)
    return;
  for (Event event : events_)
    driver_.cuEventDestroy_v2(event);
  driver_.cuStreamDestroy_v2(stream_);
}

Marker WatchedStream::make_marker() {
  Marker marker;
  driver_.check(driver_.cuEventCreate(&marker.event, kEventDisableTiming),
                "cannot create an event");
  events_.push_back(marker.event);
  return marker;
}

void WatchedStream::record(Marker &marker) {
  driver_.check(driver_.cuEventRecord(marker.event, stream_),
                "cannot record an event");
  marker.recorded = true;
}

// Spins, as the driver's own wait does; cuEventSynchronize() would not come
// back from a device that stands still.
Result WatchedStream::wait(const Marker &marker) {
  if (!marker.recorded)
    return 0;
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  for (unsigned polls = 1;; ++polls) {
    Result result = driver_.cuEventQuery(marker.event);
    if (result != kNotReady)
      return result;
    if (polls % 64 != 0)
      continue;
    std::this_thread::yield();
    std::chrono::duration<double> passed = Clock::now() - start;
    if (stall_seconds_ > 0 && passed.count() > stall_seconds_) {
      stalled_ = true;
      return kStalled;
    }
  }
}

std::string WatchedStream::text(Result result) {
  std::string text =
      result == kStalled
          ? concat("the GPU did not finish it within ", stall_seconds_, " s")
          : driver_.error_text(result);
  // A dead context answers everything with its error.
  Result now = result == kStalled ? kStalled : driver_.cuStreamQuery(stream_);
  if (now != 0 && now != kNotReady && why_lost_.empty())
    why_lost_ = text;
  return text;
}

} // namespace llmc::cuda
