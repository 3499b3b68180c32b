#pragma once
// Persistent threads that share the tiles of one launch after another.
//
// A decode step is some 200 launches of about 50 us, so handing out a launch
// must cost about a microsecond: workers spin briefly between launches and
// sleep only when nothing comes, and the caller never waits for a sleeper to
// wake up; it works itself, closes the job when the tiles run out, and waits
// only for threads that are inside a tile.

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace llmc {

class ThreadPool {
public:
  using Body = void (*)(const void *context, int64_t index);

  explicit ThreadPool(int num_threads); // the caller of run() counts as one
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(context, i) once for every i in [0, count), in any order on any
  // thread; returns when all are done and their effects are visible. `body`
  // must not throw. One run at a time.
  void run(int64_t count, Body body, const void *context);

  template <class F> void parallel_for(int64_t count, const F &f) {
    run(
        count,
        [](const void *context, int64_t i) {
          (*static_cast<const F *>(context))(i);
        },
        &f);
  }

private:
  void work();
  void take_tiles();

  struct Job {
    Body body = nullptr;
    const void *context = nullptr;
    int64_t count = 0, chunk = 1;
  };
  Job job_; // written only while closed and nobody is inside
  alignas(64) std::atomic<int64_t> next_{0}; // first tile nobody has taken
  alignas(64) std::atomic<uint32_t> generation_{
      0}; // moves with each job; what workers wait on
  alignas(64) std::atomic<int> inside_{
      0}; // workers that may be looking at job_
  std::atomic<bool> open_{false};
  std::atomic<int> num_sleeping_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

// Cores the process may use: distinct physical cores of its affinity mask, not
// more than its cgroup CPU quota.
int available_physical_cores();

} // namespace llmc
