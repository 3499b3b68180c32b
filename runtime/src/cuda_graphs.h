#pragma once
// Steps recorded as CUDA graphs: one call of the driver submits all launches
// of a step. A step of a small batch is bound by the cost of submitting them.

#include "backend.h"
#include "cuda_driver.h"

#include <map>
#include <span>

namespace llmc::cuda {

// A loaded function, to launch with the shape that the plan gives it.
struct LoadedKernel {
  Function function;
  const Kernel *description;
};

Result launch(const Driver &driver, Stream stream,
              const PreparedLaunch &prepared);

class GraphCache {
public:
  explicit GraphCache(const Driver &driver) : driver_(driver) {}
  ~GraphCache() { clear(); }
  GraphCache(const GraphCache &) = delete;

  bool contains(int key) const { return graphs_.contains(key); }

  // False once the driver has refused a recording or there are many: each takes
  // device memory that nothing has reserved.
  bool accepts_more() const { return accepts_ && graphs_.size() < kMaxGraphs; }

  // Records the launches, which do not run. Returns what the driver refused, or
  // an empty string; after a refusal no more are accepted.
  std::string record(int key, Stream stream,
                     std::span<const PreparedLaunch> launches);

  // Queues the launches of `key`, which must be there.
  Result replay(int key, Stream stream);

  GraphStats stats() const {
    return {static_cast<int64_t>(graphs_.size()), num_launches_};
  }
  void clear(); // while the context is there

private:
  static constexpr size_t kMaxGraphs = 64;

  const Driver &driver_;
  std::map<int, GraphExec> graphs_;
  bool accepts_ = true;
  int64_t num_launches_ = 0;
};

} // namespace llmc::cuda
