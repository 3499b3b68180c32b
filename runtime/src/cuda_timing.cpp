#include "cuda_timing.h"

#include "cuda_graphs.h"
#include "error.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace llmc::cuda {

namespace {

// A graph holds at least so many launches.
constexpr size_t kLaunchesPerGraph = 256;
constexpr size_t kCopyBytes = size_t{1} << 30;
constexpr int kCopies = 8;

class EventPair {
public:
  EventPair(const Driver &driver, Stream stream)
      : driver_(driver), stream_(stream) {
    driver.check(driver.cuEventCreate(&start_, 0), "cannot create an event");
    driver.check(driver.cuEventCreate(&end_, 0), "cannot create an event");
  }
  ~EventPair() {
    for (Event event : {start_, end_})
      if (event)
        driver_.cuEventDestroy_v2(event);
  }
  EventPair(const EventPair &) = delete;

  // Seconds that the device takes for what `queue` queues.
  double time(const std::function<void()> &queue) {
    driver_.check(driver_.cuEventRecord(start_, stream_),
                  "cannot record an event");
    queue();
    driver_.check(driver_.cuEventRecord(end_, stream_),
                  "cannot record an event");
    driver_.check(driver_.cuEventSynchronize(end_),
                  "the launches being timed failed");
    float milliseconds = 0;
    driver_.check(driver_.cuEventElapsedTime(&milliseconds, start_, end_),
                  "cannot read the time between two events");
    return milliseconds * 1e-3;
  }

private:
  const Driver &driver_;
  Stream stream_;
  Event start_ = nullptr, end_ = nullptr;
};

double median(std::vector<double> &values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

} // namespace

double time_launches(const Driver &driver, Stream stream,
                     std::span<const PreparedLaunch> launches, int repeats) {
  if (launches.empty())
    return 0;
  size_t passes = (kLaunchesPerGraph + launches.size() - 1) / launches.size();
  std::vector<PreparedLaunch> unrolled;
  for (size_t pass = 0; pass < passes; ++pass)
    unrolled.insert(unrolled.end(), launches.begin(), launches.end());
  GraphCache graph(driver);
  if (std::string refusal = graph.record(0, stream, unrolled); !refusal.empty())
    fail(LLMC_DEVICE_ERROR, "cannot time kernels: ", refusal);
  auto replay = [&] {
    driver.check(graph.replay(0, stream), "cannot launch a graph");
  };
  EventPair events(driver, stream);
  events.time(replay); // uploads the graph
  std::vector<double> seconds;
  for (int i = 0; i < std::max(repeats, 1); ++i)
    seconds.push_back(events.time(replay) / static_cast<double>(passes));
  return median(seconds);
}

double time_copy(const Driver &driver, Stream stream) {
  DevicePtr buffers[2] = {};
  double bandwidth = 0;
  if (!driver.cuMemAlloc_v2(&buffers[0], kCopyBytes) &&
      !driver.cuMemAlloc_v2(&buffers[1], kCopyBytes)) {
    EventPair events(driver, stream);
    auto copy = [&] {
      for (int i = 0; i < kCopies; ++i)
        driver.check(driver.cuMemcpyDtoDAsync_v2(buffers[i % 2],
                                                 buffers[1 - i % 2], kCopyBytes,
                                                 stream),
                     "cannot copy on the GPU");
    };
    events.time(copy);
    std::vector<double> seconds;
    for (int i = 0; i < 5; ++i)
      seconds.push_back(events.time(copy));
    bandwidth = 2.0 * kCopies * kCopyBytes / median(seconds);
  }
  for (DevicePtr buffer : buffers)
    if (buffer)
      driver.cuMemFree_v2(buffer);
  return bandwidth;
}

} // namespace llmc::cuda
