// Runs GPU engines through the CUDA driver API.

#include "backend.h"
#include "cuda_driver.h"
#include "cuda_graphs.h"
#include "cuda_timing.h"
#include "error.h"
#include "thread_pool.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <utility>

namespace llmc {

namespace {

using namespace cuda;

// Weights go through two pinned buffers, so that reading one from the page
// cache overlaps copying the other.
constexpr size_t kStagingBytes = size_t{16} << 20;

// "sm_90a" runs on 9.0 exactly; "sm_90" on 9.x with x >= 0 of the same major
// version.
bool runs_on(const std::string &arch, int major, int minor, int &needed_major,
             int &needed_minor) {
  std::string digits;
  for (char c : arch)
    if (std::isdigit(static_cast<unsigned char>(c)))
      digits += c;
  if (!arch.starts_with("sm_") || digits.size() < 2)
    fail(LLMC_BAD_ENGINE,
         "manifest.json: target.arch: expected sm_<number>, found ", arch,
         "; recompile the engine");
  needed_major = std::stoi(digits.substr(0, digits.size() - 1));
  needed_minor = digits.back() - '0';
  if (!std::isdigit(static_cast<unsigned char>(arch.back())))
    return major == needed_major && minor == needed_minor;
  return major == needed_major && minor >= needed_minor;
}

class CudaBackend final : public Backend {
public:
  CudaBackend(const TargetInfo &target, const CudaOptions &options)
      : driver_(Driver::load(options.library)), use_graphs_(options.graphs),
        pool_(available_physical_cores()) {
    check(driver_.cuInit(0), "cannot start the CUDA driver");
    int count = 0;
    check(driver_.cuDeviceGetCount(&count), "cannot count the GPUs");
    if (options.device < 0 || options.device >= count)
      fail(LLMC_INVALID_ARGUMENT, "device ", options.device,
           " does not exist: this machine has ", count, " GPUs");
    check(driver_.cuDeviceGet(&device_, options.device), "cannot open the GPU");
    check_target(target);
    check(driver_.cuDevicePrimaryCtxRetain(&context_, device_),
          "cannot open a context on the GPU");
    make_current();
    check(driver_.cuStreamCreate(&stream_, kStreamNonBlocking),
          "cannot create a stream");
    check(driver_.cuEventCreate(&staging_free_, kEventDisableTiming),
          "cannot create an event");
  }

  ~CudaBackend() override {
    if (!context_)
      return;
    driver_.cuCtxSetCurrent(context_);
    if (stream_)
      driver_.cuStreamSynchronize(stream_);
    graphs_.clear();
    for (Module module : modules_)
      driver_.cuModuleUnload(module);
    for (DevicePtr address : allocations_)
      driver_.cuMemFree_v2(address);
    for (void *address : pinned_)
      driver_.cuMemFreeHost(address);
    if (staging_free_)
      driver_.cuEventDestroy_v2(staging_free_);
    if (stream_)
      driver_.cuStreamDestroy_v2(stream_);
    driver_.cuDevicePrimaryCtxRelease_v2(device_);
  }

  size_t free_memory() override {
    make_current();
    size_t free = 0, total = 0;
    check(driver_.cuMemGetInfo_v2(&free, &total),
          "cannot read the GPU's free memory");
    return free;
  }
  double default_kv_cache_fraction() const override { return 0.9; }

  uint64_t allocate(size_t bytes, const char *what) override {
    make_current();
    DevicePtr address = 0;
    bytes = std::max<size_t>(bytes, 1);
    if (Result result = driver_.cuMemAlloc_v2(&address, bytes))
      fail(LLMC_OUT_OF_MEMORY, "cannot allocate ", bytes,
           " bytes of GPU memory for the ", what, ": ",
           driver_.error_text(result), " (", free_memory(), " bytes free)");
    allocations_.push_back(address);
    check(driver_.cuMemsetD8Async(address, 0, bytes, stream_),
          concat("cannot clear the ", what));
    return address;
  }

  void upload(uint64_t target, std::span<const std::byte> source) override {
    make_current();
    if (!staging_[0])
      for (std::byte *&buffer : staging_)
        buffer = static_cast<std::byte *>(pin(kStagingBytes));
    while (!source.empty()) {
      size_t n = std::min(source.size(), kStagingBytes);
      // One stream, two buffers: when this buffer's turn comes again its
      // previous copy must be over.
      if (std::exchange(in_flight_[next_], false))
        check(driver_.cuStreamSynchronize(stream_),
              "cannot copy weights to the GPU");
      std::memcpy(staging_[next_], source.data(), n);
      check(driver_.cuMemcpyHtoDAsync_v2(target, staging_[next_], n, stream_),
            "cannot copy weights to the GPU");
      in_flight_[next_] = true;
      next_ ^= 1;
      target += n;
      source = source.subspan(n);
    }
  }

  void finish_uploads() override {
    make_current();
    check(driver_.cuStreamSynchronize(stream_),
          "cannot copy weights to the GPU");
    for (std::byte *&buffer : staging_) {
      if (!buffer)
        continue;
      std::erase(pinned_, static_cast<void *>(buffer));
      check(driver_.cuMemFreeHost(buffer), "cannot free pinned memory");
      buffer = nullptr;
    }
  }

  StepBlock allocate_step_block(size_t bytes) override {
    step_block_ = {static_cast<std::byte *>(pin(bytes)),
                   allocate(bytes, "step inputs")};
    std::memset(step_block_.staging, 0, bytes);
    return step_block_;
  }

  void load_code(const CodeObject &code, const Part &part) override {
    make_current();
    Module module = nullptr;
    std::string image(reinterpret_cast<const char *>(part.bytes.data()),
                      part.bytes.size()); // aligned and terminated
    if (Result result = driver_.cuModuleLoadData(&module, image.c_str()))
      fail(LLMC_DEVICE_ERROR, "cannot load ", code.path, ": ",
           driver_.error_text(result),
           "; if the driver is older than the compiler's ptxas, update it, or "
           "recompile the engine");
    modules_.push_back(module);
  }

  const void *load_kernel(const Kernel &kernel) override {
    make_current();
    Function function = nullptr;
    if (driver_.cuModuleGetFunction(
            &function, modules_.at(static_cast<size_t>(kernel.code)),
            kernel.entry.c_str()))
      fail(LLMC_BAD_ENGINE, "kernel ", kernel.name,
           ": its code has no function ", kernel.entry,
           "; recompile the engine");
    if (kernel.shared_bytes > 0)
      check(driver_.cuFuncSetAttribute(function, kMaxDynamicSharedSize,
                                       static_cast<int>(kernel.shared_bytes)),
            concat("kernel ", kernel.name, ": cannot reserve ",
                   kernel.shared_bytes, " bytes of shared memory"));
    if (kernel.cluster[0] * kernel.cluster[1] * kernel.cluster[2] > 8)
      check(driver_.cuFuncSetAttribute(function, kNonPortableClusterSizeAllowed,
                                       1),
            concat("kernel ", kernel.name, ": its cluster is too large"));
    kernels_.push_back(
        std::make_unique<LoadedKernel>(LoadedKernel{function, &kernel}));
    return kernels_.back().get();
  }

  EncodedTensorMap encode_tensor_map(const TensorMapArg &map, uint64_t base,
                                     const Sizes &sizes) override {
    make_current();
    uint64_t shape[5], strides[5];
    uint32_t element_strides[5] = {1, 1, 1, 1, 1};
    for (size_t i = 0; i < map.shape.size(); ++i)
      shape[i] = static_cast<uint64_t>(map.shape[i].evaluate(sizes));
    for (size_t i = 0; i < map.strides.size(); ++i)
      strides[i] = static_cast<uint64_t>(map.strides[i].evaluate(sizes));
    auto log2_step = [](int bytes, int first) {
      return bytes == 0 ? 0 : bytes == first ? 1 : bytes == 2 * first ? 2 : 3;
    };
    EncodedTensorMap encoded{};
    check(driver_.cuTensorMapEncodeTiled(
              &encoded, tensor_map_type(map.dtype),
              static_cast<unsigned>(map.shape.size()),
              reinterpret_cast<void *>(base), shape, strides, map.box.data(),
              element_strides,
              /*interleave=*/0, log2_step(map.swizzle, 32),
              log2_step(map.l2_promotion, 64),
              /*fill=*/0),
          "cannot encode a tensor map of the plan");
    return encoded;
  }

  void wait_for_staging() override {
    make_current();
    // Also where an error of the step before comes to light.
    if (Result result = driver_.cuEventSynchronize(staging_free_))
      fail_step(result);
  }

  void run(std::span<const PreparedLaunch> launches,
           size_t input_bytes) override {
    make_current();
    upload_inputs(input_bytes);
    for (const PreparedLaunch &launch : launches)
      launch_kernel(launch);
    last_ = launches.empty()
                ? nullptr
                : static_cast<const LoadedKernel *>(launches.back().kernel);
  }

  bool has_graph(int key) const override { return graphs_.contains(key); }
  bool accepts_graphs() const override {
    return use_graphs_ && graphs_.accepts_more();
  }
  bool record(int key, std::span<const PreparedLaunch> launches) override {
    make_current();
    std::string refusal = graphs_.record(key, stream_, launches);
    if (!refusal.empty())
      std::fprintf(stderr,
                   "llmc: decode steps run without CUDA graphs from now on, "
                   "which is slower: %s\n",
                   refusal.c_str());
    return refusal.empty();
  }
  void replay(int key, size_t input_bytes) override {
    make_current();
    upload_inputs(input_bytes);
    last_ = nullptr;
    if (Result result = graphs_.replay(key, stream_))
      fail(LLMC_DEVICE_ERROR, "cannot launch the graph of a step of ", key,
           " tokens: ", driver_.error_text(result));
  }
  GraphStats graph_stats() const override { return graphs_.stats(); }

  double time(std::span<const PreparedLaunch> launches, int repeats) override {
    make_current();
    return time_launches(driver_, stream_, launches, repeats);
  }
  double copy_bandwidth() override {
    make_current();
    return time_copy(driver_, stream_);
  }

  void reserve_output(size_t bytes) override {
    if (bytes <= output_bytes_)
      return;
    if (output_) {
      make_current();
      std::erase(pinned_, output_);
      check(driver_.cuMemFreeHost(std::exchange(output_, nullptr)),
            "cannot free pinned memory");
    }
    output_bytes_ = 0;
    output_ = pin(bytes);
    output_bytes_ = bytes;
  }

  const void *fetch(uint64_t address, size_t bytes) override {
    make_current();
    reserve_output(bytes); // scoring may want more rows than a batch has
    check(driver_.cuMemcpyDtoHAsync_v2(output_, address, bytes, stream_),
          "cannot read a step's output");
    if (Result result = driver_.cuStreamSynchronize(stream_))
      fail_step(result);
    return output_;
  }

  ThreadPool &thread_pool() override { return pool_; }

private:
  void check(Result result, const std::string &what) const {
    driver_.check(result, what);
  }
  [[noreturn]] void fail_step(Result result) const {
    fail(LLMC_DEVICE_ERROR, "a step failed: ", driver_.error_text(result),
         last_ ? "; its last kernel was " + last_->description->name
               : "; it ran as a CUDA graph, load the engine without them",
         "; CUDA_LAUNCH_BLOCKING=1 names the kernel at fault");
  }
  void make_current() {
    check(driver_.cuCtxSetCurrent(context_),
          "cannot use the GPU from this thread");
  }

  void check_target(const TargetInfo &target) {
    int major = 0, minor = 0, needed_major = 0, needed_minor = 0;
    check(
        driver_.cuDeviceGetAttribute(&major, kComputeCapabilityMajor, device_),
        "cannot read the GPU's architecture");
    check(
        driver_.cuDeviceGetAttribute(&minor, kComputeCapabilityMinor, device_),
        "cannot read the GPU's architecture");
    char name[128] = "GPU";
    driver_.cuDeviceGetName(name, sizeof(name), device_);
    if (!runs_on(target.arch, major, minor, needed_major, needed_minor))
      fail(LLMC_UNSUPPORTED, "the engine is for ", target.arch,
           " (compute capability ", needed_major, ".", needed_minor,
           "), this GPU is ", name, " with ", major, ".", minor,
           "; recompile it with `llmc compile --target sm_", major, minor, "`");
  }

  void *pin(size_t bytes) {
    make_current();
    void *address = nullptr;
    if (Result result = driver_.cuMemHostAlloc(&address, bytes, 0))
      fail(LLMC_OUT_OF_MEMORY, "cannot pin ", bytes,
           " bytes of host memory: ", driver_.error_text(result));
    pinned_.push_back(address);
    return address;
  }

  static int tensor_map_type(DType dtype) {
    switch (dtype) {
    case DType::F32:
      return kMapF32;
    case DType::F16:
      return kMapF16;
    case DType::BF16:
      return kMapBF16;
    case DType::I32:
      return kMapI32;
    case DType::I64:
      return kMapI64;
    case DType::U64:
      return kMapU64;
    default:
      return kMapU8; // one-byte types move as bytes
    }
  }

  void launch_kernel(const PreparedLaunch &prepared) {
    const Kernel &kernel =
        *static_cast<const LoadedKernel *>(prepared.kernel)->description;
    if (Result result = launch(driver_, stream_, prepared))
      fail(LLMC_DEVICE_ERROR, "cannot launch kernel ", kernel.name, " (grid ",
           prepared.grid[0], "x", prepared.grid[1], "x", prepared.grid[2],
           ", block ", kernel.block[0], "x", kernel.block[1], "x",
           kernel.block[2], ", shared ", kernel.shared_bytes,
           " bytes): ", driver_.error_text(result));
  }

  void upload_inputs(size_t bytes) {
    check(driver_.cuMemcpyHtoDAsync_v2(step_block_.device, step_block_.staging,
                                       bytes, stream_),
          "cannot upload step inputs");
    check(driver_.cuEventRecord(staging_free_, stream_),
          "cannot record an event");
  }

  const Driver driver_;
  GraphCache graphs_{driver_};
  const bool use_graphs_;
  ThreadPool pool_;
  Device device_ = 0;
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  Event staging_free_ = nullptr; // the last copy of step inputs is over
  std::vector<DevicePtr> allocations_;
  std::vector<void *> pinned_;
  std::vector<Module> modules_;
  std::vector<std::unique_ptr<LoadedKernel>> kernels_;
  const LoadedKernel *last_ = nullptr; // of the last step; null: a graph
  StepBlock step_block_;
  std::byte *staging_[2] = {};
  bool in_flight_[2] = {};
  int next_ = 0;
  void *output_ = nullptr;
  size_t output_bytes_ = 0;
};

} // namespace

std::unique_ptr<Backend> make_cuda_backend(const TargetInfo &target,
                                           const CudaOptions &options) {
  return std::make_unique<CudaBackend>(target, options);
}

} // namespace llmc
