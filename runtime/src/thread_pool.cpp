#include "thread_pool.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sched.h>
#include <set>
#include <string>
#include <utility>

namespace llmc {

namespace {

// About 30 us: longer than the gap between two launches, shorter than what a
// sleeping core would notice.
constexpr int kSpins = 1000;
// A straggler's tile may need our core when threads outnumber cores, so yield
// after a short spin.
constexpr int kSpinsBeforeYield = 2000;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int read_int(const std::string &path, int fallback) {
  std::ifstream in(path);
  int value;
  return in >> value ? value : fallback;
}

} // namespace

ThreadPool::ThreadPool(int num_threads) {
  for (int i = 1; i < num_threads; ++i)
    workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  generation_.fetch_add(1);
  generation_.notify_all();
  for (std::thread &worker : workers_)
    worker.join();
}

void ThreadPool::run(int64_t count, Body body, const void *context) {
  if (count <= 1 || workers_.empty()) {
    for (int64_t i = 0; i < count; ++i)
      body(context, i);
    return;
  }
  // Chunks keep the shared counter cool when tiles are many and tiny, and leave
  // enough of them to even out the end.
  job_ = {body, context, count,
          std::max<int64_t>(1, count / (int64_t{num_threads()} * 16))};
  next_.store(0, std::memory_order_relaxed);
  open_.store(true); // publishes job_
  generation_.fetch_add(1);
  if (num_sleeping_.load() > 0)
    generation_.notify_all();
  take_tiles();
  // A worker raises inside_ before it looks at open_, we lower open_ before we
  // look at inside_: in the single order of these four, either the worker sees
  // the door closed or we see the worker.
  open_.store(false);
  for (int spins = 0; inside_.load() != 0; ++spins)
    if (spins < kSpinsBeforeYield)
      pause();
    else
      std::this_thread::yield();
}

void ThreadPool::take_tiles() {
  const Job job = job_;
  for (;;) {
    int64_t begin = next_.fetch_add(job.chunk, std::memory_order_relaxed);
    if (begin >= job.count)
      return;
    int64_t end = std::min(begin + job.chunk, job.count);
    for (int64_t i = begin; i < end; ++i)
      job.body(job.context, i);
  }
}

void ThreadPool::work() {
  uint32_t seen = 0;
  for (;;) {
    for (int spins = 0;
         generation_.load(std::memory_order_acquire) == seen && spins < kSpins;
         ++spins)
      pause();
    if (generation_.load() == seen) {
      num_sleeping_.fetch_add(1);
      generation_.wait(seen); // returns at once when it has moved since: a job
                              // posted just now is not missed
      num_sleeping_.fetch_sub(1);
    }
    seen = generation_.load();
    if (stop_)
      return;
    inside_.fetch_add(1);
    if (open_.load())
      take_tiles();
    inside_.fetch_sub(1); // releases the effects of our tiles to run()
  }
}

int available_physical_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0)
    return std::max(1u, std::thread::hardware_concurrency());
  std::set<std::pair<int, int>> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mask))
      continue;
    std::string topology =
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    int core = read_int(topology + "core_id", -1);
    cores.insert(
        core < 0
            ? std::pair(-1, cpu)
            : std::pair(read_int(topology + "physical_package_id", 0), core));
  }
  int result = std::max<int>(1, static_cast<int>(cores.size()));
  std::ifstream quota(
      "/sys/fs/cgroup/cpu.max"); // "max 100000" or "200000 100000"
  double allowed, period;
  if (quota >> allowed >> period && period > 0)
    result =
        std::clamp(static_cast<int>(std::ceil(allowed / period)), 1, result);
  return result;
}

} // namespace llmc
