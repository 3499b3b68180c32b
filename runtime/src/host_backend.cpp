// Runs host engines: kernels are functions of kernels/host.so, a launch is its
// tiles shared among the thread pool.

#include "backend.h"
#include "cpu_features.h"
#include "error.h"
#include "thread_pool.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <sys/mman.h>
#include <unistd.h>

namespace llmc {

namespace {

using Entry = void (*)(const uint64_t *args, int64_t tile);

constexpr size_t kHugePage = size_t{2} << 20;

void check_target(const TargetInfo &target) {
  if (target.name != "host")
    fail(LLMC_UNSUPPORTED, "the engine is for target ", target.name, " (",
         target.arch, "), not for the host");
  if (target.arch != host_arch())
    fail(LLMC_UNSUPPORTED, "the engine is for ", target.arch,
         " processors, this machine is ", host_arch(),
         "; recompile it here with `llmc compile --target host`");
  std::string missing;
  for (const std::string &feature : missing_cpu_features(target.features))
    missing += " " + feature;
  if (!missing.empty())
    fail(LLMC_UNSUPPORTED,
         "the engine needs CPU features that this machine does not offer:",
         missing, "; recompile it here with `llmc compile --target host`");
}

template <class F> double median_seconds(int repeats, const F &body) {
  std::vector<double> seconds;
  for (int i = 0; i < std::max(repeats, 1); ++i) {
    auto start = std::chrono::steady_clock::now();
    body();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

class HostBackend final : public Backend {
public:
  explicit HostBackend(int num_threads)
      : pool_(num_threads > 0 ? num_threads : available_physical_cores()) {}

  ~HostBackend() override {
    for (auto [data, size] : mappings_)
      ::munmap(data, size);
    for (void *library : libraries_)
      ::dlclose(library);
  }

  size_t free_memory() override {
    std::ifstream in("/proc/meminfo");
    for (std::string key, unit; in >> key;) {
      size_t kilobytes;
      if (!(in >> kilobytes))
        break;
      std::getline(in, unit);
      if (key == "MemAvailable:")
        return kilobytes * 1024;
    }
    return static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) *
           static_cast<size_t>(sysconf(_SC_PAGESIZE));
  }

  double default_kv_cache_fraction() const override {
    return 0.5;
  } // the machine has other work

  // Anonymous pages are zero and cost nothing until touched. Huge pages matter:
  // decode streams all weights each step.
  uint64_t allocate(size_t bytes, const char *what) override {
    if (bytes == 0)
      bytes = 1;
    size_t size = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    void *data = ::mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
      fail(LLMC_OUT_OF_MEMORY, "cannot allocate ", bytes, " bytes for the ",
           what, ": ", std::strerror(errno), " (", free_memory(),
           " bytes available)");
    mappings_.emplace_back(data, size + kHugePage);
    uint64_t address = (reinterpret_cast<uint64_t>(data) + kHugePage - 1) /
                       kHugePage * kHugePage;
    ::madvise(reinterpret_cast<void *>(address), size, MADV_HUGEPAGE);
    return address;
  }

  void upload(uint64_t target, std::span<const std::byte> source) override {
    constexpr size_t kChunk = size_t{4} << 20;
    pool_.parallel_for(
        static_cast<int64_t>((source.size() + kChunk - 1) / kChunk),
        [&](int64_t i) {
          size_t begin = static_cast<size_t>(i) * kChunk;
          std::memcpy(reinterpret_cast<std::byte *>(target) + begin,
                      source.data() + begin,
                      std::min(kChunk, source.size() - begin));
        });
  }
  void finish_uploads() override {}

  StepBlock allocate_step_block(size_t bytes) override {
    uint64_t address = allocate(bytes, "step inputs");
    return {reinterpret_cast<std::byte *>(address), address};
  }

  // Pages are taken when they are touched, which must not fail then.
  uint64_t allocate_host(size_t bytes, const char *what) override {
    if (size_t free = free_memory(); bytes > free)
      fail(LLMC_OUT_OF_MEMORY, "cannot allocate ", bytes, " bytes for the ",
           what, ": ", free, " bytes available");
    return allocate(bytes, what);
  }
  void copy(CopyKind, const DeviceCopy &copy) override {
    std::memcpy(reinterpret_cast<void *>(copy.target),
                reinterpret_cast<const void *>(copy.source), copy.bytes);
  }

  void fill(uint64_t address, size_t bytes, unsigned char value) override {
    std::memset(reinterpret_cast<void *>(address), value, bytes);
  }

  void load_code(const CodeObject &code, const Part &part) override {
    std::string path = part.path;
    int fd = -1;
    if (path.empty()) { // inside an archive: the loader needs a file of its own
      fd = ::memfd_create("llmc-host.so", MFD_CLOEXEC);
      if (fd < 0 || ::write(fd, part.bytes.data(), part.bytes.size()) !=
                        static_cast<ssize_t>(part.bytes.size()))
        fail(LLMC_OUT_OF_MEMORY, "cannot copy ", code.path,
             " out of the archive: ", std::strerror(errno));
      path = concat("/proc/self/fd/", fd);
    } else if (path.find('/') == std::string::npos) {
      path = "./" + path; // or dlopen would search the library path
    }
    void *library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    std::string error = library ? "" : ::dlerror();
    if (fd >= 0)
      ::close(fd);
    if (!library)
      fail(LLMC_BAD_ENGINE, "cannot load ", code.path, ": ", error,
           "; recompile the engine on this machine");
    libraries_.push_back(library);
  }

  const void *load_kernel(const Kernel &kernel) override {
    void *entry = ::dlsym(libraries_.at(static_cast<size_t>(kernel.code)),
                          kernel.entry.c_str());
    if (!entry)
      fail(LLMC_BAD_ENGINE, "kernel ", kernel.name,
           ": its code has no function ", kernel.entry,
           "; recompile the engine");
    return entry;
  }

  EncodedTensorMap encode_tensor_map(const TensorMapArg &, uint64_t,
                                     const Sizes &) override {
    fail(LLMC_BAD_ENGINE,
         "plan.json: a host engine has no tensor maps; recompile the engine");
  }

  void wait_for_staging() override {} // run() returns when all is done

  void run(std::span<const PreparedLaunch> launches,
           const StepUpload &upload) override {
    for (const DeviceCopy &copy : upload.copies)
      std::memcpy(reinterpret_cast<void *>(copy.target),
                  reinterpret_cast<const void *>(copy.source), copy.bytes);
    struct Context {
      Entry entry;
      const uint64_t *slots;
    };
    for (const PreparedLaunch &launch : launches) {
      Context context{
          reinterpret_cast<Entry>(const_cast<void *>(launch.kernel)),
          launch.slots};
      int64_t tiles = int64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
      pool_.run(
          tiles,
          [](const void *c, int64_t tile) {
            auto *context = static_cast<const Context *>(c);
            context->entry(context->slots, tile);
          },
          &context);
    }
  }

  double time(std::span<const PreparedLaunch> launches, int repeats) override {
    run(launches, {}); // brings the weights in
    return median_seconds(repeats, [&] { run(launches, {}); });
  }

  double copy_bandwidth() override {
    static constexpr size_t kBytes = size_t{128} << 20, kTile = size_t{1} << 20;
    struct Buffers {
      std::vector<std::byte> source, target;
    } buffers{std::vector<std::byte>(kBytes), std::vector<std::byte>(kBytes)};
    auto copy = [&] {
      pool_.run(
          kBytes / kTile,
          [](const void *c, int64_t tile) {
            auto *b = static_cast<const Buffers *>(c);
            size_t at = static_cast<size_t>(tile) * kTile;
            std::memcpy(const_cast<std::byte *>(b->target.data()) + at,
                        b->source.data() + at, kTile);
          },
          &buffers);
    };
    copy();
    return 2.0 * kBytes / median_seconds(5, copy);
  }

  // Outputs are read in place.
  void reserve_output(size_t) override {}
  void reserve_slots(size_t) override {}
  void start_fetch(int slot, uint64_t address, size_t) override {
    outputs_[slot] = reinterpret_cast<const void *>(address);
  }
  const void *finish_fetch(int slot) override { return outputs_[slot]; }

  const void *fetch(uint64_t address, size_t) override {
    return reinterpret_cast<const void *>(address);
  }
  ThreadPool &thread_pool() override { return pool_; }

private:
  ThreadPool pool_;
  std::vector<std::pair<void *, size_t>> mappings_;
  std::vector<void *> libraries_;
  const void *outputs_[2] = {};
};

} // namespace

std::unique_ptr<Backend> make_host_backend(const TargetInfo &target,
                                           const HostOptions &options) {
  check_target(target);
  return std::make_unique<HostBackend>(options.num_threads);
}

} // namespace llmc
