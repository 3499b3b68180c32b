#pragma once
// A stream whose owner never waits for ever: a device that stands still, or
// whose context is dead, is lost.

#include "cuda_driver.h"

#include <string>
#include <vector>

namespace llmc::cuda {

// An event of the stream. Nothing was recorded: nothing to wait for.
struct Marker {
  Event event = nullptr;
  bool recorded = false;
};

// The device's primary context, which other libraries of the process may share.
class PrimaryContext {
public:
  PrimaryContext(const Driver &driver, Device device)
      : driver_(driver), device_(device) {
    driver_.check(driver_.cuDevicePrimaryCtxRetain(&context_, device_),
                  "cannot open a context on the GPU");
  }
  ~PrimaryContext() {
    if (context_)
      driver_.cuDevicePrimaryCtxRelease_v2(device_);
  }
  PrimaryContext(const PrimaryContext &) = delete;
  operator Context() const { return context_; }
  void keep() { context_ = nullptr; } // for ever

private:
  const Driver &driver_;
  const Device device_;
  Context context_ = nullptr;
};

class WatchedStream {
public:
  // Waits of more than `stall_seconds` fail; 0: never. The context is current.
  WatchedStream(const Driver &driver, double stall_seconds);
  ~WatchedStream();
  WatchedStream(const WatchedStream &) = delete;

  operator Stream() const { return stream_; }

  Marker make_marker(); // destroyed with the stream
  void record(Marker &marker);

  // Waits until the work before the marker is done. Errors of that work come to
  // light here. kStalled after stall_seconds.
  Result wait(const Marker &marker);
  static constexpr Result kStalled = -1;

  // Of an error: why, and whether the device can be used any further.
  std::string text(Result result);

  // The context is dead or the device stands still: nothing of it can be used
  // or waited for.
  bool is_lost() const { return !why_lost_.empty(); }
  bool is_stalled() const { return stalled_; }
  const std::string &why_lost() const { return why_lost_; }

private:
  const Driver &driver_;
  const double stall_seconds_;
  Stream stream_ = nullptr;
  std::vector<Event> events_;
  std::string why_lost_;
  bool stalled_ = false;
};

} // namespace llmc::cuda
