#pragma once
// What the runtime needs from a device. One backend runs host engines, one runs
// GPU engines through the driver API.

#include "device_times.h"
#include "manifest.h"
#include "mapped_file.h"
#include "plan.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace llmc {

class ThreadPool;

// An encoded CUtensorMap; passed by value to kernels.
struct alignas(64) EncodedTensorMap {
  std::byte bytes[128];
};

// A launch with all arguments in final form. `slots` holds one 64-bit value per
// argument (an address, an integer, float bits in the low half); `params`
// points at each argument's bytes: its slot, or its tensor map.
struct PreparedLaunch {
  const void *kernel = nullptr; // what load_kernel returned
  std::array<uint32_t, 3> grid{};
  uint64_t *slots = nullptr;
  void **params = nullptr;
};

// Fixed buffers of the step inputs: the host writes `staging`, kernels read
// `device`.
struct StepBlock {
  std::byte *staging = nullptr;
  uint64_t device = 0;
};

// A copy on the device.
struct DeviceCopy {
  uint64_t target, source;
  size_t bytes;
};

// What a step does before its launches: uploads the first `bytes` of the step
// block, then copies.
struct StepUpload {
  size_t bytes;
  std::span<const DeviceCopy> copies;
};

struct GraphStats {
  int64_t num_graphs = 0;   // steps recorded
  int64_t num_launches = 0; // steps replayed
};

class Backend {
public:
  virtual ~Backend() = default;

  // Memory. Everything is taken while loading and lives as long as the backend;
  // addresses are 256-byte aligned.
  virtual size_t free_memory() = 0;
  virtual double default_kv_cache_fraction()
      const = 0; // share of the free memory that the KV pool may take
  virtual uint64_t allocate(
      size_t bytes,
      const char *what) = 0; // zero-filled; LLMC_OUT_OF_MEMORY with numbers
  virtual void upload(
      uint64_t target,
      std::span<const std::byte> source) = 0; // while loading; may keep reading
                                              // `source` until finish_uploads
  virtual void finish_uploads() = 0;
  virtual StepBlock allocate_step_block(size_t bytes) = 0;

  // Host memory that copies go to and come from at full speed.
  // LLMC_OUT_OF_MEMORY with numbers.
  virtual uint64_t allocate_host(size_t bytes, const char *what) = 0;

  // Copies after the steps so far and before those to come, in order.
  enum class CopyKind { OnDevice, ToHost, ToDevice };
  virtual void copy(CopyKind kind, const DeviceCopy &copy) = 0;

  // Fills memory before the steps to come.
  virtual void fill(uint64_t address, size_t bytes, unsigned char value) = 0;

  // Code. Errors name the part or the kernel.
  virtual void load_code(const CodeObject &code,
                         const Part &part) = 0; // in plan order
  virtual const void *load_kernel(const Kernel &kernel) = 0;
  virtual EncodedTensorMap encode_tensor_map(const TensorMapArg &map,
                                             uint64_t base,
                                             const Sizes &sizes) = 0;

  // Waits until the staging block may be written again: the device may still be
  // reading it for the step before.
  virtual void wait_for_staging() = 0;

  // A step: upload, then the launches in order. Steps run one after the other.
  virtual void run(std::span<const PreparedLaunch> launches,
                   const StepUpload &upload) = 0;
  // run() returns at once and not when the step is done.
  virtual bool is_asynchronous() const { return false; }

  // A step can be recorded as a graph and replayed: it costs the host one
  // launch then. Recordings are told apart by `key`. A device without them
  // inherits this.
  virtual bool has_graph(int) const { return false; }
  virtual bool accepts_graphs() const { return false; } // record() may succeed
  // Nothing runs. False when the device refuses: run() the launches then.
  virtual bool record(int, std::span<const PreparedLaunch>) { return false; }
  // Like run() of what was recorded: addresses and integers are those of then.
  virtual void replay(int, const StepUpload &) {}
  virtual GraphStats graph_stats() const { return {}; }

  // Seconds of one pass over the launches, which are in the stream back to
  // back: the median of `repeats`. For profiles; nothing else runs meanwhile.
  virtual double time(std::span<const PreparedLaunch> launches,
                      int repeats) = 0;

  // Bytes per second at which the device copies its memory, read and written
  // bytes together: the ceiling of kernels that move bytes.
  virtual double copy_bandwidth() = 0;

  // Room for outputs of so many bytes, so that a step allocates nothing: of
  // fetch(), and of each of the two slots of start_fetch().
  virtual void reserve_output(size_t bytes) = 0;
  virtual void reserve_slots(size_t bytes) = 0;

  // Queues the copy of an output (perhaps of no bytes) behind the steps so far.
  // finish_fetch() waits for it, not for later steps; its result is valid until
  // the slot is used again.
  virtual void start_fetch(int slot, uint64_t address, size_t bytes) = 0;
  virtual const void *finish_fetch(int slot) = 0;

  // From here on each step is timed on the device. device_times() of the step
  // that used `slot` last, after finish_fetch(); nothing where there is no
  // clock.
  virtual void measure_device_times() {}
  virtual std::optional<DeviceTimes> device_times(int) { return std::nullopt; }

  // Waits for all steps and returns an output in host memory, valid until the
  // next run.
  virtual const void *fetch(uint64_t address, size_t bytes) = 0;

  // Why nothing can be computed any more; empty while it can.
  virtual std::string why_lost() const { return {}; }

  // Threads for host-side work (sampling). Never null.
  virtual ThreadPool &thread_pool() = 0;
};

struct HostOptions {
  int num_threads = 0; // 0: physical cores available to the process
};
struct CudaOptions {
  int device = 0;
  std::string library;      // empty: $LLMC_CUDA_LIBRARY, else libcuda.so.1
  bool graphs = true;       // replay decode steps
  double stall_seconds = 0; // a step that takes longer is given up; 0: none
};

// Both check the target first: LLMC_UNSUPPORTED names what the engine needs,
// what is here and what to do.
std::unique_ptr<Backend> make_host_backend(const TargetInfo &target,
                                           const HostOptions &options);
std::unique_ptr<Backend> make_cuda_backend(const TargetInfo &target,
                                           const CudaOptions &options);

} // namespace llmc
