// A stand-in for libcuda: memory is host memory, a "cubin" is a host shared
// library of tile functions (toy/host.c), work is queued until somebody waits.
//
// Queuing is the point: a copy reads its source as late as a real one might, so
// that overwriting a staging buffer too early changes results here too, and a
// wait runs no more of the queue than it has to. FakeCuda in fake_cuda.h is the
// handle for tests: errors on demand, what leaked.
#include "fake_cuda.h"

#include "cuda_driver.h"
#include "fake_cuda_queue.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace llmc::cuda;
using llmc::test::FakeEvent;
using llmc::test::FakeQueue;

namespace {

using Entry = void (*)(const uint64_t *args, int64_t tile);

struct FunctionData {
  Entry entry;
  int num_params;
};
struct GraphData { // of a graph and of its executable alike
  std::vector<std::function<void()>> launches;
  int pdl_launches = 0;
};

llmc::test::FakeCudaState state;
// Never destroyed: what a stalled device keeps is no leak of the process.
auto &allocations = *new std::map<uintptr_t, size_t>,
     &pinned = *new std::map<uintptr_t, size_t>;
auto &events = *new std::set<FakeEvent *>;
FakeQueue queue;
std::optional<GraphData> capture; // launches go here instead of the queue
Result sticky = 0; // as on a real device, a failed step poisons the context

// Errors of kernels (7xx) and of the hardware (214) stay.
bool poisons(Result result) {
  return (result >= 700 && result < 800) || result == 214;
}

Result result_of(const char *function) {
  ++state.calls;
  const char *failing = state.fail_function;
  if (sticky == 0 && failing && std::strcmp(failing, function) == 0 &&
      state.fail_after-- <= 0) {
    state.fail_function = nullptr;
    Result result = state.fail_result;
    if (poisons(result)) {
      sticky = result;
      queue.clear(); // what was queued is never done
    }
    return result;
  }
  return sticky;
}

// Copies must stay inside one allocation.
void require_inside(DevicePtr address, size_t bytes, const char *what) {
  auto it = allocations.upper_bound(address);
  if (it != allocations.begin() &&
      address + bytes <= std::prev(it)->first + std::prev(it)->second)
    return;
  std::fprintf(
      stderr,
      "fake CUDA: %s of %zu bytes at %llx is outside every allocation\n", what,
      bytes, address);
  std::abort();
}

} // namespace

// What a stream in capture does not allow, as far as the runtime could do it.
#define REFUSE_IN_CAPTURE()                                                    \
  if (capture)                                                                 \
  return 900

#define RETURN_FAILURE()                                                       \
  if (Result result = result_of(__func__))                                     \
  return result

extern "C" {

llmc::test::FakeCudaState *fake_cuda_state() {
  state.live_allocations = static_cast<int>(allocations.size());
  state.live_pinned = static_cast<int>(pinned.size());
  return &state;
}

Result cuInit(unsigned) {
  RETURN_FAILURE();
  return 0;
}
Result cuDriverGetVersion(int *version) {
  *version = 13000;
  return 0;
}
Result cuGetErrorName(Result error, const char **text) {
  *text = error == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == 214 ? "CUDA_ERROR_ECC_UNCORRECTABLE"
                         : "CUDA_ERROR_UNKNOWN";
  return 0;
}
Result cuGetErrorString(Result error, const char **text) {
  *text = error == 2 ? "out of memory" : "an error on demand";
  return 0;
}
Result cuDeviceGetCount(int *count) {
  RETURN_FAILURE();
  *count = 1;
  return 0;
}
Result cuDeviceGet(Device *device, int) {
  RETURN_FAILURE();
  *device = 0;
  return 0;
}
Result cuDeviceGetName(char *name, int size, Device) {
  std::snprintf(name, static_cast<size_t>(size), "Pretend GPU");
  return 0;
}
Result cuDeviceGetAttribute(int *value, int attribute, Device) {
  RETURN_FAILURE();
  *value = attribute == kComputeCapabilityMajor ? state.major : state.minor;
  return 0;
}
Result cuDevicePrimaryCtxRetain(Context *context, Device) {
  RETURN_FAILURE();
  ++state.live_contexts;
  *context = reinterpret_cast<Context>(1);
  return 0;
}
Result cuDevicePrimaryCtxRelease_v2(Device) {
  --state.live_contexts;
  sticky = 0;
  return 0;
}
Result cuCtxSetCurrent(Context) { return result_of(__func__); }
Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  RETURN_FAILURE();
  *free = *total = state.memory;
  return 0;
}
Result cuMemAlloc_v2(DevicePtr *address, size_t bytes) {
  RETURN_FAILURE();
  REFUSE_IN_CAPTURE();
  void *data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(data, 0xa5, bytes); // device memory is not zero
  *address = reinterpret_cast<DevicePtr>(data);
  allocations[*address] = bytes;
  return 0;
}
Result cuMemFree_v2(DevicePtr address) {
  if (!allocations.erase(address))
    return 1;
  std::free(reinterpret_cast<void *>(address));
  return 0;
}
Result cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  RETURN_FAILURE();
  *address = std::malloc(bytes);
  pinned[reinterpret_cast<uintptr_t>(*address)] = bytes;
  return 0;
}
Result cuMemFreeHost(void *address) {
  if (!pinned.erase(reinterpret_cast<uintptr_t>(address)))
    return 1;
  std::free(address);
  return 0;
}
Result cuMemsetD8Async(DevicePtr address, unsigned char value, size_t bytes,
                       Stream) {
  RETURN_FAILURE();
  require_inside(address, bytes, "memset");
  state.filled = address;
  state.filled_bytes = bytes;
  ++state.fills;
  queue.push_back(
      [=] { std::memset(reinterpret_cast<void *>(address), value, bytes); });
  return 0;
}
Result cuMemcpyHtoDAsync_v2(DevicePtr target, const void *source, size_t bytes,
                            Stream) {
  RETURN_FAILURE();
  REFUSE_IN_CAPTURE();
  state.uploaded = source;
  state.uploaded_bytes = bytes;
  require_inside(target, bytes, "upload");
  queue.push_back(
      [=] { std::memcpy(reinterpret_cast<void *>(target), source, bytes); });
  return 0;
}
Result cuMemcpyDtoHAsync_v2(void *target, DevicePtr source, size_t bytes,
                            Stream) {
  RETURN_FAILURE();
  REFUSE_IN_CAPTURE();
  state.downloaded_bytes += static_cast<int64_t>(bytes);
  require_inside(source, bytes, "download");
  queue.push_back(
      [=] { std::memcpy(target, reinterpret_cast<void *>(source), bytes); });
  return 0;
}
Result cuMemcpyDtoDAsync_v2(DevicePtr target, DevicePtr source, size_t bytes,
                            Stream) {
  RETURN_FAILURE();
  REFUSE_IN_CAPTURE();
  require_inside(source, bytes, "copy");
  require_inside(target, bytes, "copy");
  ++state.device_copies;
  queue.push_back([=] {
    std::memcpy(reinterpret_cast<void *>(target),
                reinterpret_cast<void *>(source), bytes);
  });
  return 0;
}
Result cuStreamCreate(Stream *stream, unsigned) {
  RETURN_FAILURE();
  *stream = reinterpret_cast<Stream>(2);
  return 0;
}
Result cuStreamSynchronize(Stream) {
  REFUSE_IN_CAPTURE();
  queue.wait_until(queue.end(), state.stalled);
  return result_of(__func__);
}
Result cuStreamQuery(Stream) {
  RETURN_FAILURE();
  return queue.is_done(queue.end()) ? 0 : kNotReady;
}
Result cuStreamDestroy_v2(Stream) { return 0; }
Result cuEventCreate(Event *event, unsigned) {
  RETURN_FAILURE();
  *event = reinterpret_cast<Event>(*events.insert(new FakeEvent).first);
  ++state.live_events;
  return 0;
}
Result cuEventRecord(Event event, Stream) {
  RETURN_FAILURE();
  REFUSE_IN_CAPTURE();
  *reinterpret_cast<FakeEvent *>(event) = {queue.end(), /*asked=*/false};
  return 0;
}
Result cuEventQuery(Event event) {
  RETURN_FAILURE();
  auto &data = *reinterpret_cast<FakeEvent *>(event);
  if (queue.is_done(data.position))
    return 0;
  // Not ready when first asked for.
  if (!std::exchange(data.asked, true) || state.stalled)
    return kNotReady;
  queue.run_until(data.position);
  return 0;
}
Result cuEventSynchronize(Event event) {
  REFUSE_IN_CAPTURE();
  queue.wait_until(reinterpret_cast<FakeEvent *>(event)->position,
                   state.stalled);
  return result_of(__func__);
}
Result cuEventElapsedTime(float *milliseconds, Event, Event) {
  RETURN_FAILURE();
  *milliseconds = 1;
  return 0;
}
Result cuEventDestroy_v2(Event event) {
  auto *data = reinterpret_cast<FakeEvent *>(event);
  events.erase(data);
  delete data;
  --state.live_events;
  return 0;
}

Result cuModuleLoadData(Module *module, const void *image) {
  RETURN_FAILURE();
  // The length is in the ELF header, as for a real cubin.
  const auto *header = static_cast<const Elf64_Ehdr *>(image);
  size_t size = header->e_shoff + size_t{header->e_shnum} * header->e_shentsize;
  int fd = memfd_create("cubin", 0);
  if (write(fd, image, size) != static_cast<ssize_t>(size))
    return 200;
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  close(fd);
  *module = static_cast<Module>(library);
  ++state.live_modules;
  return library ? 0 : 200;
}
Result cuModuleUnload(Module module) {
  --state.live_modules;
  dlclose(module);
  return 0;
}
Result cuModuleGetFunction(Function *function, Module module,
                           const char *name) {
  RETURN_FAILURE();
  static std::map<std::string, FunctionData> functions;
  auto entry = reinterpret_cast<Entry>(dlsym(module, name));
  auto *num_params = static_cast<const int *>(
      dlsym(module, (std::string(name) + "_num_params").c_str()));
  if (!entry || !num_params)
    return 500;
  functions[name] = {entry, *num_params};
  *function = reinterpret_cast<Function>(&functions[name]);
  return 0;
}
Result cuFuncSetAttribute(Function, int attribute, int value) {
  RETURN_FAILURE();
  if (attribute == kMaxDynamicSharedSize)
    state.shared_bytes = value;
  return 0;
}
Result cuLaunchKernelEx(const LaunchConfig *config, Function function,
                        void **params, void **) {
  RETURN_FAILURE();
  int pdl_launches = 0;
  for (unsigned i = 0; i < config->num_attributes; ++i) {
    const LaunchAttribute &attribute = config->attributes[i];
    if (attribute.id == kClusterDimension)
      state.cluster_x = static_cast<int>(attribute.value.cluster.x);
    if (attribute.id == kProgrammaticStreamSerialization)
      pdl_launches += attribute.value.programmatic_stream_serialization;
  }
  const auto &data = *reinterpret_cast<FunctionData *>(function);
  std::vector<uint64_t> args(
      static_cast<size_t>(data.num_params)); // parameters are copied at launch
  for (size_t i = 0; i < args.size(); ++i)
    std::memcpy(&args[i], params[i], 8);
  int64_t tiles = int64_t{config->grid[0]} * config->grid[1] * config->grid[2];
  if (tiles == 0)
    return 1;
  auto work = [=, entry = data.entry] {
    for (int64_t tile = 0; tile < tiles; ++tile)
      entry(args.data(), tile);
  };
  if (capture) {
    capture->launches.push_back(work);
    capture->pdl_launches += pdl_launches;
    return 0;
  }
  ++state.launches;
  state.pdl_launches += pdl_launches;
  queue.push_back(work);
  return 0;
}

Result cuStreamBeginCapture_v2(Stream, int mode) {
  RETURN_FAILURE();
  REFUSE_IN_CAPTURE();
  if (mode != kStreamCaptureThreadLocal)
    return 1;
  capture.emplace();
  ++state.captures;
  return 0;
}
Result cuStreamEndCapture(Stream, Graph *graph) {
  std::optional<GraphData> ended = std::exchange(capture, std::nullopt);
  *graph = nullptr;
  RETURN_FAILURE(); // the capture is over all the same
  if (!ended)
    return 901;
  *graph = reinterpret_cast<Graph>(new GraphData(std::move(*ended)));
  ++state.live_graphs;
  return 0;
}
Result cuGraphInstantiateWithFlags(GraphExec *executable, Graph graph,
                                   unsigned long long) {
  RETURN_FAILURE();
  *executable = reinterpret_cast<GraphExec>(
      new GraphData(*reinterpret_cast<GraphData *>(graph)));
  ++state.live_graphs;
  return 0;
}
Result cuGraphLaunch(GraphExec executable, Stream) {
  RETURN_FAILURE();
  REFUSE_IN_CAPTURE();
  const auto &data = *reinterpret_cast<GraphData *>(executable);
  ++state.graph_launches;
  state.launches += static_cast<int64_t>(data.launches.size());
  state.pdl_launches += data.pdl_launches;
  for (const auto &launch : data.launches)
    queue.push_back(launch);
  return 0;
}
Result cuGraphExecDestroy(GraphExec executable) {
  delete reinterpret_cast<GraphData *>(executable);
  --state.live_graphs;
  return 0;
}
Result cuGraphDestroy(Graph graph) {
  delete reinterpret_cast<GraphData *>(graph);
  --state.live_graphs;
  return 0;
}
Result cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address,
                              const uint64_t *shape, const uint64_t *strides,
                              const uint32_t *box, const uint32_t *, int,
                              int swizzle, int l2_promotion, int) {
  RETURN_FAILURE();
  // A record that tests can read back in place of the hardware's bits.
  uint64_t record[16] = {reinterpret_cast<uint64_t>(address),
                         shape[0],
                         rank > 1 ? shape[1] : 0,
                         rank > 1 ? strides[0] : 0,
                         box[0],
                         rank > 1 ? box[1] : 0,
                         static_cast<uint64_t>(type),
                         static_cast<uint64_t>(swizzle),
                         static_cast<uint64_t>(l2_promotion),
                         rank};
  std::memcpy(map, record, sizeof(record));
  std::memcpy(state.tensor_map, record, sizeof(record));
  return reinterpret_cast<uintptr_t>(map) % 64 == 0 ? 0 : 1;
}

} // extern "C"
