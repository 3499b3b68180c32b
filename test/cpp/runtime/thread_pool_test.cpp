#include "check.h"
#include "thread_pool.h"

#include <chrono>
#include <numeric>
#include <vector>

using namespace llmc;

TEST(every_index_runs_once) {
  for (int threads : {1, 2, 3, 8}) { // more threads than cores too
    ThreadPool pool(threads);
    CHECK_EQ(pool.num_threads(), threads);
    for (int64_t count : {0, 1, 2, 7, 64, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
      pool.parallel_for(count,
                        [&](int64_t i) { ++hits[static_cast<size_t>(i)]; });
      for (auto &hit : hits)
        CHECK_EQ(hit.load(), 1);
    }
  }
}

// Plain, unsynchronised data: a missing happens-before edge would lose updates
// (and show under ThreadSanitizer).
TEST(effects_are_visible_to_the_next_run) {
  ThreadPool pool(4);
  std::vector<int64_t> values(97, 0);
  for (int round = 0; round < 20000; ++round)
    pool.parallel_for(97, [&](int64_t i) {
      values[static_cast<size_t>((i * 31 + round) % 97)] += 1;
    });
  for (int64_t value : values)
    CHECK_EQ(value, 20000);
}

TEST(sleeping_workers_wake_up) {
  ThreadPool pool(4);
  for (int round = 0; round < 50; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::atomic<int> sum = 0;
    pool.parallel_for(10, [&](int64_t i) { sum += static_cast<int>(i); });
    CHECK_EQ(sum.load(), 45);
  }
}

TEST(a_pool_that_never_ran_ends) { ThreadPool pool(8); }

TEST(cores_are_counted) {
  CHECK(available_physical_cores() >= 1);
  CHECK(available_physical_cores() <=
        static_cast<int>(std::thread::hardware_concurrency()));
}

TEST_MAIN()
