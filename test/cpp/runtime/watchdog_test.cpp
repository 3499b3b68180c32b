// An executor that stands still: its requests end, and it may come back.
#include "faults.h"

using namespace llmc;
using namespace llmc::test;

namespace {

// Stands still in its step until it is let go, or breaks there.
class StuckRunner : public NullRunner {
public:
  using NullRunner::NullRunner;
  void run(const Batch &batch, const KvCacheManager &kv_cache) override {
    while (stuck)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    NullRunner::run(batch, kv_cache);
  }
  std::atomic<bool> stuck{false};
};

struct Told { // what a callback heard
  std::atomic<int> tokens{0}, ends{0}, after_end{0};
  std::atomic<bool> stuck{false};
  std::atomic<llmc_finish> finish{LLMC_RUNNING};

  static void callback(void *user, const llmc_token *, size_t count,
                       llmc_finish finish) {
    auto *self = static_cast<Told *>(user);
    self->after_end += self->ends > 0;
    self->tokens += static_cast<int>(count);
    while (self->stuck)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (finish != LLMC_RUNNING) {
      self->finish = finish;
      ++self->ends;
    }
  }
};

} // namespace

TEST(the_watchdog_fails_requests_while_the_executor_stands_still) {
  StuckRunner runner(64, 4);
  KvCacheManager kv_cache(64, 4);
  ModelInfo model;
  Executor executor(runner, kv_cache,
                    {.max_batch_size = 2, .max_num_tokens = 8}, model,
                    {.stall_seconds = 0.5});
  for (int round = 0; round < 3; ++round) {
    runner.stuck = true;
    Told told;
    auto running = make_request(executor, 3, 5);
    auto called = make_request(executor, 3, 5, Told::callback, &told);
    auto waiting = make_request(executor, 3, 5);
    std::vector<std::shared_ptr<RequestStream>> streams = {running->stream,
                                                           waiting->stream};
    executor.submit(running), executor.submit(called), executor.submit(waiting);
    for (auto &stream : streams)
      CHECK(has(failure_of(*stream, {}), "it is at: starting a step"));
    wait_until([&] { return told.ends > 0; });
    CHECK_EQ(told.finish.load(), LLMC_FINISH_ERROR);
    CHECK(has(THROWN(Error, executor.check_health()), "has not moved for"));
    CHECK(has(THROWN(Error, executor.submit(make_request(executor, 3, 5))),
              "has not moved for"));
    // It comes back: nothing is told twice, and it serves again.
    runner.stuck = false;
    wait_until([&] { return health(executor).empty(); });
    wait_until([&] { return executor.stats().num_running == 0; });
    executor.score({}, {}, nullptr);
    CHECK_EQ(executor.stats().blocks_used, 0);
    auto next = make_request(executor, 3, 5);
    auto stream = next->stream;
    executor.submit(next);
    CHECK(read_all(*stream) == scripted_output({1, 1, 1}, 0, 5));
    CHECK_EQ(told.ends, 1);
    CHECK_EQ(told.after_end, 0);
  }
}

// A scheduler that never starts anything moves too, but gets nowhere. An engine
// refuses such a request.
TEST(the_watchdog_notices_work_that_is_never_scheduled) {
  NullRunner runner(8, 4);
  KvCacheManager kv_cache(8, 4);
  ModelInfo model;
  Executor executor(runner, kv_cache,
                    {.max_batch_size = 2, .max_num_tokens = 8}, model,
                    {.stall_seconds = 0.5});
  auto request = make_request(executor, 30, 30),
       fits = make_request(executor, 3, 5);
  auto stream = request->stream, second = fits->stream;
  executor.submit(request);
  executor.submit(fits); // waits behind it
  CHECK(has(failure_of(*stream, {}), "has not moved for"));
  CHECK(has(failure_of(*second, {}), "has not moved for"));
  wait_until([&] { return health(executor).empty(); });
  auto next = make_request(executor, 3, 5);
  stream = next->stream;
  executor.submit(next);
  CHECK_EQ(read_all(*stream).size(), 5);
}

// The one whose callback does not return hears of its end when it does; the
// others do not wait for that.
TEST(a_callback_that_does_not_return_stops_its_own_request_only) {
  NullRunner runner(64, 4);
  KvCacheManager kv_cache(64, 4);
  ModelInfo model;
  Executor executor(runner, kv_cache,
                    {.max_batch_size = 2, .max_num_tokens = 8}, model,
                    {.stall_seconds = 0.5});
  Told told, other;
  told.stuck = true;
  auto first = make_request(executor, 3, 5, Told::callback, &told);
  auto second = make_request(executor, 3, 5, Told::callback, &other);
  executor.submit(first);
  wait_until([&] { return told.tokens > 0; });
  executor.submit(second);
  wait_until([&] { return other.ends > 0; });
  CHECK_EQ(other.finish.load(), LLMC_FINISH_ERROR);
  CHECK(has(THROWN(Error, executor.check_health()), "handing out tokens"));
  CHECK_EQ(told.ends, 0);
  told.stuck = false;
  wait_until([&] { return told.ends > 0; });
  wait_until([&] { return health(executor).empty(); });
  executor.score({}, {}, nullptr);
  CHECK_EQ(told.finish.load(), LLMC_FINISH_ERROR);
  CHECK_EQ(told.tokens, 1);
  for (const Told *one : {&told, &other}) {
    CHECK_EQ(one->ends, 1);
    CHECK_EQ(one->after_end, 0);
  }
}

TEST_MAIN()
