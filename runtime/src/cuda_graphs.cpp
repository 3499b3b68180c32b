#include "cuda_graphs.h"

#include "error.h"

#include <algorithm>

namespace llmc::cuda {

Result launch(const Driver &driver, Stream stream,
              const PreparedLaunch &prepared) {
  const auto &[function, kernel] =
      *static_cast<const LoadedKernel *>(prepared.kernel);
  LaunchAttribute attributes[2] = {};
  LaunchConfig config{};
  std::copy(prepared.grid.begin(), prepared.grid.end(), config.grid);
  std::copy(kernel->block.begin(), kernel->block.end(), config.block);
  config.shared_bytes = kernel->shared_bytes;
  config.stream = stream;
  config.attributes = attributes;
  auto [x, y, z] = kernel->cluster;
  if (x * y * z > 1) {
    LaunchAttribute &cluster = attributes[config.num_attributes++];
    cluster.id = kClusterDimension;
    cluster.value.cluster = {x, y, z};
  }
  if (kernel->pdl) { // becomes a programmatic edge of a graph
    LaunchAttribute &pdl = attributes[config.num_attributes++];
    pdl.id = kProgrammaticStreamSerialization;
    pdl.value.programmatic_stream_serialization = 1;
  }
  return driver.cuLaunchKernelEx(&config, function, prepared.params, nullptr);
}

std::string GraphCache::record(int key, Stream stream,
                               std::span<const PreparedLaunch> launches) {
  Graph graph = nullptr;
  GraphExec executable = nullptr;
  const char *what = "cannot begin recording";
  // Thread-local: other threads of the process may use CUDA meanwhile.
  Result result =
      driver_.cuStreamBeginCapture_v2(stream, kStreamCaptureThreadLocal);
  if (!result) {
    for (const PreparedLaunch &prepared : launches) {
      what = "cannot record a launch";
      result = launch(driver_, stream, prepared);
      if (result)
        break;
    }
    // Always, or the stream stays in capture.
    Result ended = driver_.cuStreamEndCapture(stream, &graph);
    if (!result) {
      what = "cannot end recording";
      result = ended;
    }
  }
  if (!result) {
    what = "cannot instantiate a graph";
    result = driver_.cuGraphInstantiateWithFlags(&executable, graph, 0);
  }
  if (graph)
    driver_.cuGraphDestroy(graph);
  if (result) {
    accepts_ = false;
    return concat(what, ": ", driver_.error_text(result));
  }
  graphs_.emplace(key, executable);
  return {};
}

Result GraphCache::replay(int key, Stream stream) {
  ++num_launches_;
  return driver_.cuGraphLaunch(graphs_.at(key), stream);
}

void GraphCache::clear() {
  for (auto [key, executable] : graphs_)
    driver_.cuGraphExecDestroy(executable);
  graphs_.clear();
}

} // namespace llmc::cuda
