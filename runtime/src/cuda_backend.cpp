// Runs GPU engines through the CUDA driver API.

#include "backend.h"
#include "cuda_driver.h"
#include "cuda_graphs.h"
#include "cuda_step_timer.h"
#include "cuda_stream.h"
#include "cuda_target.h"
#include "cuda_timing.h"
#include "error.h"
#include "thread_pool.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

namespace llmc {

namespace {

using namespace cuda;

// Weights go through two pinned buffers, so that reading one from the page
// cache overlaps copying the other.
constexpr size_t kStagingBytes = size_t{16} << 20;

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
    check_target(driver_, device_, target);
    context_.emplace(driver_, device_);
    make_current();
    stream_.emplace(driver_, options.stall_seconds);
    staging_free_ = stream_->make_marker();
    output_ready_ = stream_->make_marker();
    for (Slot &slot : slots_)
      slot.ready = stream_->make_marker();
  }

  ~CudaBackend() override {
    driver_.cuCtxSetCurrent(*context_);
    if (is_stalled()) {
      context_->keep();
      return; // to give anything back would wait for it
    }
    graphs_.clear();
    for (Module module : modules_)
      driver_.cuModuleUnload(module);
    for (DevicePtr address : allocations_)
      driver_.cuMemFree_v2(address);
    for (void *address : pinned_)
      driver_.cuMemFreeHost(address);
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
    fill(address, bytes, 0);
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
        check(driver_.cuStreamSynchronize(*stream_),
              "cannot copy weights to the GPU");
      std::memcpy(staging_[next_], source.data(), n);
      check(driver_.cuMemcpyHtoDAsync_v2(target, staging_[next_], n, *stream_),
            "cannot copy weights to the GPU");
      in_flight_[next_] = true;
      next_ ^= 1;
      target += n;
      source = source.subspan(n);
    }
  }

  void finish_uploads() override {
    make_current();
    check(driver_.cuStreamSynchronize(*stream_),
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

  uint64_t allocate_host(size_t bytes, const char *) override {
    return reinterpret_cast<uint64_t>(pin(bytes));
  }
  void copy(CopyKind kind, const DeviceCopy &copy) override {
    make_current();
    Result result =
        kind == CopyKind::OnDevice
            ? driver_.cuMemcpyDtoDAsync_v2(copy.target, copy.source, copy.bytes,
                                           *stream_)
        : kind == CopyKind::ToHost
            ? driver_.cuMemcpyDtoHAsync_v2(
                  reinterpret_cast<void *>(copy.target), copy.source,
                  copy.bytes, *stream_)
            : driver_.cuMemcpyHtoDAsync_v2(
                  copy.target, reinterpret_cast<const void *>(copy.source),
                  copy.bytes, *stream_);
    check(result, "cannot copy a KV block");
  }

  void fill(uint64_t address, size_t bytes, unsigned char value) override {
    make_current();
    check(driver_.cuMemsetD8Async(address, value, bytes, *stream_),
          "cannot fill GPU memory");
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
    Result result = driver_.cuModuleGetFunction(
        &function, modules_.at(static_cast<size_t>(kernel.code)),
        kernel.entry.c_str());
    if (result == kNotFound)
      fail(LLMC_BAD_ENGINE, "kernel ", kernel.name,
           ": its code has no function ", kernel.entry,
           "; recompile the engine");
    check(result, concat("cannot load kernel ", kernel.name));
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
    return cuda::encode_tensor_map(driver_, map, base, sizes);
  }

  void wait_for_staging() override {
    make_current();
    // Also where an error of the step before comes to light.
    if (Result result = stream_->wait(staging_free_))
      fail_step(result);
  }

  void run(std::span<const PreparedLaunch> launches,
           const StepUpload &upload) override {
    make_current();
    upload_inputs(upload);
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
    std::string refusal = graphs_.record(key, *stream_, launches);
    if (!refusal.empty())
      std::fprintf(stderr,
                   "llmc: decode steps run without CUDA graphs from now on, "
                   "which is slower: %s\n",
                   refusal.c_str());
    return refusal.empty();
  }
  void replay(int key, const StepUpload &upload) override {
    make_current();
    upload_inputs(upload);
    last_ = nullptr;
    if (Result result = graphs_.replay(key, *stream_))
      fail(LLMC_DEVICE_ERROR, "cannot launch the graph of a step of ", key,
           " tokens: ", stream_->text(result));
  }
  bool is_asynchronous() const override { return true; }
  GraphStats graph_stats() const override { return graphs_.stats(); }

  double time(std::span<const PreparedLaunch> launches, int repeats) override {
    make_current();
    return time_launches(driver_, *stream_, launches, repeats);
  }
  double copy_bandwidth() override {
    make_current();
    return time_copy(driver_, *stream_);
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
    copy_output(output_, address, bytes, output_ready_);
    if (Result result = stream_->wait(output_ready_))
      fail_step(result);
    return output_;
  }

  void reserve_slots(size_t bytes) override {
    for (Slot &slot : slots_)
      slot.output = pin(bytes);
  }
  void start_fetch(int slot, uint64_t address, size_t bytes) override {
    make_current();
    if (timer_)
      timer_->end(slot);
    copy_output(slots_[slot].output, address, bytes, slots_[slot].ready);
  }
  const void *finish_fetch(int slot) override {
    make_current();
    if (Result result = stream_->wait(slots_[slot].ready))
      fail_step(result);
    return slots_[slot].output;
  }

  void measure_device_times() override {
    make_current();
    timer_.emplace(driver_, *stream_);
  }
  std::optional<DeviceTimes> device_times(int slot) override {
    if (!timer_)
      return std::nullopt;
    try {
      return timer_->read(slot);
    } catch (
        const Error &) { // the device has failed meanwhile: a step will say
      return std::nullopt;
    }
  }

  std::string why_lost() const override { return stream_->why_lost(); }
  ThreadPool &thread_pool() override { return pool_; }

private:
  struct Slot { // an output of a step on its way to the host
    void *output = nullptr;
    Marker ready;
  };

  // After waiting for whatever runs.
  bool is_stalled() {
    if (stream_->is_stalled())
      return true;
    if (driver_.cuEventRecord(output_ready_.event, *stream_) == 0)
      stream_->wait({output_ready_.event, /*recorded=*/true});
    return stream_->is_stalled();
  }
  void check(Result result, const std::string &what) {
    if (result)
      fail(LLMC_DEVICE_ERROR, what, ": ",
           stream_ ? stream_->text(result) : driver_.error_text(result));
  }
  [[noreturn]] void fail_step(Result result) {
    fail(LLMC_DEVICE_ERROR, "a step failed: ", stream_->text(result),
         last_ ? "; its last kernel was " + last_->description->name
               : "; it ran as a CUDA graph, load the engine without them",
         "; CUDA_LAUNCH_BLOCKING=1 names the kernel at fault");
  }
  void make_current() {
    check(driver_.cuCtxSetCurrent(*context_),
          "cannot use the GPU from this thread");
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

  void launch_kernel(const PreparedLaunch &prepared) {
    const Kernel &kernel =
        *static_cast<const LoadedKernel *>(prepared.kernel)->description;
    if (Result result = launch(driver_, *stream_, prepared))
      fail(LLMC_DEVICE_ERROR, "cannot launch kernel ", kernel.name, " (grid ",
           prepared.grid[0], "x", prepared.grid[1], "x", prepared.grid[2],
           ", block ", kernel.block[0], "x", kernel.block[1], "x",
           kernel.block[2], ", shared ", kernel.shared_bytes,
           " bytes): ", stream_->text(result));
  }

  void upload_inputs(const StepUpload &upload) {
    if (timer_)
      timer_->begin();
    check(driver_.cuMemcpyHtoDAsync_v2(step_block_.device, step_block_.staging,
                                       upload.bytes, *stream_),
          "cannot upload step inputs");
    stream_->record(staging_free_);
    for (const DeviceCopy &copy : upload.copies)
      check(driver_.cuMemcpyDtoDAsync_v2(copy.target, copy.source, copy.bytes,
                                         *stream_),
            "cannot pass on the tokens of the step before");
    if (timer_)
      timer_->kernels();
  }

  void copy_output(void *target, uint64_t address, size_t bytes,
                   Marker &ready) {
    if (bytes > 0)
      check(driver_.cuMemcpyDtoHAsync_v2(target, address, bytes, *stream_),
            "cannot read a step's output");
    stream_->record(ready);
  }

  const Driver driver_;
  GraphCache graphs_{driver_};
  const bool use_graphs_;
  ThreadPool pool_;
  Device device_ = 0;
  // In this order, so that the last goes first.
  std::optional<PrimaryContext> context_;
  std::optional<WatchedStream> stream_;
  std::optional<StepTimer> timer_;
  Marker staging_free_; // the last copy of step inputs is over
  Marker output_ready_;
  Slot slots_[2];
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
