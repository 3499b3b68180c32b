#pragma once
// Times launches and copies with events of the device.

#include "backend.h"
#include "cuda_driver.h"

#include <span>

namespace llmc::cuda {

// Seconds of one pass over the launches, the median of `repeats`. The launches
// are replayed as a graph that holds them often enough that what it costs to
// start a graph does not count. Throws LLMC_DEVICE_ERROR.
double time_launches(const Driver &driver, Stream stream,
                     std::span<const PreparedLaunch> launches, int repeats);

// Bytes per second, read and written, of copies between two large buffers. 0
// when the device has no room for them.
double time_copy(const Driver &driver, Stream stream);

} // namespace llmc::cuda
