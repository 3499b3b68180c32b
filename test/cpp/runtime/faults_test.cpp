// What happens when something breaks: no crash, no leak, every request ends
// once, what it got is the beginning of its output, and health tells the truth.
#include "checked.h"
#include "faults.h"

#include <new>
#include <random>

using namespace llmc;
using namespace llmc::test;

// Whatever call of the driver fails while loading, and how late.
TEST(a_failure_of_any_call_while_loading_leaks_nothing) {
  ToyEngine gpu(sampling);
  for (const char *function :
       {"cuMemAlloc_v2", "cuMemHostAlloc", "cuMemsetD8Async", "cuEventCreate",
        "cuStreamCreate", "cuMemcpyHtoDAsync_v2", "cuModuleLoadData",
        "cuModuleGetFunction", "cuCtxSetCurrent", "cuMemGetInfo_v2"}) {
    int failures = 0;
    for (int after = 0; after < 30; ++after) {
      Failure failure(function, 2, after);
      try {
        Engine::load(gpu.path(), options());
        break; // it needs no more of these calls
      } catch (const Error &error) {
        CHECK(has(error.what(), "CUDA_ERROR_OUT_OF_MEMORY"));
        ++failures;
      }
      check_nothing_leaked();
    }
    CHECK(failures > 0);
    check_nothing_leaked();
  }
}

// An error that a context does not survive: an ECC error, an illegal address.
TEST(a_lost_device_stops_the_engine_with_the_reason) {
  ToyEngine gpu(sampling);
  Tokens right = output_of(gpu.path(), {1, 2}, 50);
  for (bool overlap : {false, true})
    for (auto [code, name] : {std::pair(214, "CUDA_ERROR_ECC_UNCORRECTABLE"),
                              std::pair(700, "CUDA_ERROR_ILLEGAL_ADDRESS")})
      for (int after : {6, 11, 18}) {
        {
          llmc_engine_options chosen = options();
          chosen.overlap = overlap;
          chosen.max_batch_size = 2;
          auto engine = Engine::load(gpu.path(), chosen);
          CHECK_EQ(health(*engine), "");
          Failure failure("cuEventQuery", code, after);
          std::vector<std::shared_ptr<RequestStream>> streams;
          std::string refusal;
          for (int i = 0; i < 6; ++i)
            try {
              streams.push_back(
                  engine->submit(Tokens{1, 2}, greedy(50), nullptr, nullptr));
            } catch (const Error &error) {
              refusal = error.what();
            }
          // Those that ran and those that waited.
          for (auto &stream : streams)
            CHECK(has(failure_of(*stream, right), name));
          CHECK(has(health(*engine), "must be loaded again"));
          CHECK(has(health(*engine), name));
          CHECK(has(THROWN(Error, engine->submit(Tokens{1}, greedy(1), nullptr,
                                                 nullptr)),
                    name));
          CHECK(has(THROWN(Error, engine->score({}, 0, nullptr)), name));
          CHECK_EQ(engine->stats().num_running, 0);
          CHECK_EQ(engine->stats().num_waiting, 0);
          CHECK_EQ(engine->stats().blocks_used, 0);
        }
        check_nothing_leaked();
      }
  CHECK(output_of(gpu.path(), {1, 2}, 50) == right); // a new one works
}

TEST(errors_that_pass_are_survived_and_health_says_so) {
  ToyEngine gpu(sampling);
  auto engine = Engine::load(gpu.path(), options());
  for (int i = 0; i < 4; ++i) {
    Failure failure("cuMemcpyHtoDAsync_v2", 1);
    auto stream = engine->submit(Tokens{1, 2}, greedy(5), nullptr, nullptr);
    CHECK(has(failure_of(*stream, {}), "cannot upload step inputs"));
    CHECK_EQ(health(*engine).empty(), i < 2);
  }
  CHECK(has(health(*engine), "the last 4 steps failed: cannot upload"));
  CHECK_EQ(read_all(*engine->submit(Tokens{1, 2}, greedy(5), nullptr, nullptr))
               .size(),
           5);
  CHECK_EQ(health(*engine), "");
}

// Host memory is full where no step can fail: while tokens are handed out.
TEST(full_host_memory_ends_the_engine_and_not_the_process) {
  NullRunner runner(64, 4);
  KvCacheManager kv_cache(64, 4);
  ModelInfo model;
  Executor executor(runner, kv_cache,
                    {.max_batch_size = 2, .max_num_tokens = 8}, model);
  auto full = [](void *user, const llmc_token *, size_t count, llmc_finish) {
    if (count > 0 && ++*static_cast<int *>(user) == 3)
      throw std::bad_alloc();
  };
  int calls = 0;
  auto failing = make_request(executor, 3, 5, full, &calls);
  auto beside = make_request(executor, 3, 50),
       waiting = make_request(executor, 3, 5);
  std::vector<std::shared_ptr<RequestStream>> streams = {beside->stream,
                                                         waiting->stream};
  Tokens right = scripted_output({1, 1, 1}, 0, 50);
  executor.submit(beside);
  executor.submit(failing);
  try {
    executor.submit(waiting);
  } catch (const Error &) { // it was too late
    streams.pop_back();
  }
  for (auto &stream : streams)
    CHECK(has(failure_of(*stream, right), "bad_alloc"));
  CHECK(has(THROWN(Error, executor.check_health()), "bad_alloc"));
  CHECK(has(THROWN(Error, executor.submit(make_request(executor, 3, 5))),
            "must be loaded again"));
}

// Clients cancel, vanish (they let go of the stream) or stay, at any moment.
TEST(ten_thousand_random_cancels) {
  ToyEngine gpu(sampling);
  std::vector<Tokens> right;
  for (int i = 0; i < 64; ++i)
    right.push_back(output_of(gpu.path(), {i}, 20));
  for (bool overlap : {false, true}) {
    llmc_engine_options chosen = options();
    chosen.overlap = overlap;
    chosen.policy = LLMC_MAX_UTILIZATION;
    chosen.kv_cache_tokens = 120; // often full
    auto engine = Engine::load(gpu.path(), chosen);
    constexpr int kClients = 4, kEach = 2500;
    std::atomic<int> cancelled{0}, whole{0}, wrong{0};
    auto client = [&](uint32_t seed) {
      std::mt19937 rng(seed);
      for (int i = 0; i < kEach; ++i) {
        size_t first = rng() % 64, read = rng() % 8;
        auto stream = engine->submit(Tokens{static_cast<int32_t>(first)},
                                     greedy(20), nullptr, nullptr);
        Tokens got;
        llmc_finish finish = LLMC_RUNNING;
        llmc_token token;
        while (got.size() < read && finish == LLMC_RUNNING)
          if (stream->next(&token, 1, 30, finish))
            got.push_back(token.id);
        bool stays = rng() % 8 == 0;
        if (!stays)
          stream->cancel();
        if (rng() % 2 == 0 && !stays)
          continue; // vanishes
        while (finish == LLMC_RUNNING)
          if (stream->next(&token, 1, 30, finish))
            got.push_back(token.id);
        (finish == LLMC_FINISH_LENGTH ? whole : cancelled)++;
        const Tokens &all = right[first];
        wrong += got.size() > all.size() ||
                 !std::equal(got.begin(), got.end(), all.begin()) ||
                 (finish == LLMC_FINISH_LENGTH && got.size() != all.size());
      }
    };
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kClients; ++i)
      threads.emplace_back(client, i);
    for (std::thread &thread : threads)
      thread.join();
    wait_until([&] {
      llmc_engine_stats stats = engine->stats();
      return stats.num_running + stats.num_waiting == 0;
    });
    CHECK_EQ(wrong, 0);
    CHECK(cancelled > 1000 && whole > 500);
    CHECK_EQ(engine->stats().blocks_used, 0);
    CHECK_EQ(health(*engine), "");
  }
  check_nothing_leaked();
}

namespace {

// Takes a block that nobody will ever give back.
class ThievishRunner : public NullRunner {
public:
  using NullRunner::NullRunner;
  void run(const Batch &batch, const KvCacheManager &kv_cache) override {
    if (steals.exchange(false))
      (void)const_cast<BlockPool &>(kv_cache.pool()).allocate();
    NullRunner::run(batch, kv_cache);
  }
  std::atomic<bool> steals{false};
};

} // namespace

TEST(a_lost_block_is_noticed_when_nothing_runs) {
  ThievishRunner runner(64, 4);
  KvCacheManager kv_cache(64, 4);
  ModelInfo model;
  Executor executor(runner, kv_cache,
                    {.max_batch_size = 2, .max_num_tokens = 8}, model);
  for (int i = 0; i < 3; ++i) {
    auto request = make_request(executor, 3, 5);
    auto stream = request->stream;
    executor.submit(request);
    read_all(*stream);
  }
  CHECK_EQ(health(executor), "");
  runner.steals = true;
  if (!kChecked) // it has looked already in this second
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  executor.submit(make_request(executor, 3, 5));
  wait_until([&] { return !health(executor).empty(); });
  CHECK(has(health(executor), "counts 1 owners and has 0"));
}

// A block of four slots: the fifth position is the first of its second block,
// of which the rest must be neither zero nor of another sequence.
TEST(new_blocks_are_poisoned_where_builds_check_themselves) {
  ToyEngine gpu(sampling);
  auto engine = Engine::load(gpu.path(), options());
  int64_t before = cuda().fills;
  for (int round = 0; round < 2; ++round) {
    read_all(*engine->submit(Tokens(5, round), greedy(1), nullptr, nullptr));
    int64_t fills = cuda().fills - std::exchange(before, cuda().fills);
    CHECK_EQ(fills, kChecked ? 4 : 0); // K and V of two blocks
    if (!kChecked)
      continue;
    auto *bytes = reinterpret_cast<const unsigned char *>(cuda().filled);
    int64_t poisoned = std::count(bytes, bytes + cuda().filled_bytes, 0x7b);
    CHECK_EQ(poisoned * 4, static_cast<int64_t>(cuda().filled_bytes) * 3);
  }
}

// The last one: it leaves behind what the stalled device has.
TEST(a_stalled_stream_is_given_up) {
  ToyEngine gpu(sampling);
  auto engine = Engine::load(gpu.path(), [] {
    llmc_engine_options chosen = options();
    chosen.stall_seconds = 0.5;
    return chosen;
  }());
  cuda().stalled = true;
  auto first = engine->submit(Tokens{1, 2}, greedy(5), nullptr, nullptr);
  auto second = engine->submit(Tokens{1, 2}, greedy(5), nullptr, nullptr);
  failure_of(*first, {});
  failure_of(*second, {});
  wait_until([&] { // before, it is the watchdog that speaks
    return health(*engine).find("must be loaded again") != std::string::npos;
  });
  CHECK(has(health(*engine), "did not finish it within 0.5 s"));
  CHECK(
      has(THROWN(Error, engine->submit(Tokens{1}, greedy(1), nullptr, nullptr)),
          "must be loaded again"));
  engine.reset(); // closes, and gives nothing back that would wait
  cuda().stalled = false;
}

TEST_MAIN()
