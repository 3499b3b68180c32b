#pragma once
// What tests see of the stand-in for libcuda.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace llmc::test {

struct FakeCudaState {
  // To set.
  int major = 9, minor = 0;
  size_t memory = size_t{1} << 30;
  std::atomic<const char *> fail_function = nullptr; // the call that fails ...
  std::atomic<int> fail_after = 0;   // ... after so many good ones ...
  std::atomic<int> fail_result = 0;  // ... with this CUresult: once, or from
                                     // then on when it is one of those that a
                                     // context does not survive
  std::atomic<bool> stalled = false; // nothing that is queued is done

  // To read.
  int64_t calls = 0, launches = 0; // launches that ran or are queued
  int64_t captures = 0, graph_launches = 0;
  int64_t downloaded_bytes = 0, device_copies = 0;
  const void *uploaded = nullptr; // source and size of the last upload
  size_t uploaded_bytes = 0;
  uint64_t filled = 0; // where the last memset went, and how far
  size_t filled_bytes = 0;
  int64_t fills = 0;
  int pdl_launches = 0, cluster_x = 0, shared_bytes = 0;
  int live_contexts = 0, live_modules = 0, live_allocations = 0,
      live_pinned = 0, live_events = 0,
      live_graphs = 0; // graphs and their executables
  uint64_t tensor_map[16] =
      {}; // address, shape[2], stride, box[2], type, swizzle, promotion, rank
};

using FakeCudaStateFunction = FakeCudaState *(*)();

} // namespace llmc::test
