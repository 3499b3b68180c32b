#pragma once

#include <chrono>

namespace llmc {

// When a step was on the device, on the host's clock: exact against each other,
// and against the host's own times to some microseconds.
struct DeviceTimes {
  std::chrono::steady_clock::time_point begin;        // its inputs are copied
  std::chrono::steady_clock::time_point kernels, end; // its kernels run
};

} // namespace llmc
