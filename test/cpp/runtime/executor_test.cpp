// The executor thread under random clients, on a model that computes nothing:
// callers submit, cancel, disconnect, set priorities and deadlines from several
// threads while steps run and some of them fail.
#include "check.h"
#include "executor.h"
#include "null_runner.h"

#include <algorithm>
#include <random>
#include <thread>

using namespace llmc;
using namespace llmc::test;

namespace {

// Fails one step in `period`; 0: none.
class FailingRunner : public NullRunner {
public:
  FailingRunner(int num_blocks, int block_size, int period, bool late)
      : NullRunner(num_blocks, block_size, {.late = late}), period_(period) {}
  void run(const Batch &batch, const KvCacheManager &kv_cache) override {
    if (period_ > 0 && ++steps_ % period_ == 0) {
      if (steps_ / period_ % 2 == 0)
        fail(LLMC_DEVICE_ERROR, "this step fails on purpose");
      fail_on_device_ = true;
    }
    NullRunner::run(batch, kv_cache);
  }

private:
  const int period_;
  int steps_ = 0;
};

struct Endings {
  int64_t whole = 0, cancelled = 0, late = 0, failed = 0, wrong = 0,
          stopped = 0, failed_forks = 0;
};

// One client: a few requests at a time, each read to its end or left.
Endings client(Executor &executor, uint32_t seed, int count) {
  std::mt19937 rng(seed);
  Endings endings;
  for (int i = 0; i < count; ++i) {
    auto request = std::make_shared<Request>();
    std::vector<int32_t> prompt(1 + rng() % 40,
                                static_cast<int32_t>(rng() % 3));
    prompt.back() = static_cast<int32_t>(rng() % kNullVocab);
    int output = 1 + static_cast<int>(rng() % 20);
    uint64_t salt = rng() % 2;
    request->sequence.tokens = prompt;
    request->sequence.num_prompt_tokens = static_cast<int>(prompt.size());
    request->sequence.cache_salt = salt;
    request->params.ignore_eos = true;
    // Some end by a stop token: with overlap, in the middle of the step after.
    std::vector<int32_t> right = scripted_output(prompt, salt, output);
    if (rng() % 3 == 0) {
      int32_t stop = right[rng() % right.size()];
      request->params.stop_token_ids = {stop};
      right.erase(std::find(right.begin(), right.end(), stop) + 1, right.end());
    }
    request->max_total_tokens = static_cast<int>(prompt.size()) + output;
    if (rng() % 8 == 0)
      request->deadline = std::chrono::steady_clock::now() +
                          std::chrono::microseconds(rng() % 200);
    auto stream =
        std::make_shared<RequestStream>(nullptr, nullptr, executor.attention());
    stream->set_priority(static_cast<int>(rng() % 5));
    request->stream = stream;
    std::shared_ptr<RequestStream> fork;
    if (rng() % 4 == 0) {
      auto second = std::make_shared<Request>();
      second->sequence = request->sequence;
      second->params = request->params;
      second->max_total_tokens = request->max_total_tokens;
      second->leader = request;
      second->stream = fork = std::make_shared<RequestStream>(
          nullptr, nullptr, executor.attention());
      executor.submit({std::move(request), std::move(second)});
    } else {
      executor.submit(std::move(request));
    }
    size_t cancel_after = rng() % 3 ? 1000 : rng() % 10;
    std::vector<int32_t> tokens;
    llmc_finish end = LLMC_RUNNING;
    auto read = [&](RequestStream &from) {
      llmc_token out[4];
      size_t n = from.next(out, 4, 30, end);
      for (size_t k = 0; k < n; ++k)
        tokens.push_back(out[k].id);
    };
    try {
      while (end == LLMC_RUNNING) {
        if (tokens.size() >= cancel_after)
          stream->cancel();
        if (rng() % 16 == 0)
          stream->set_priority(static_cast<int>(rng() % 5));
        read(*stream);
      }
      bool whole = end == LLMC_FINISH_LENGTH || end == LLMC_FINISH_STOP;
      endings.whole += whole;
      endings.stopped += end == LLMC_FINISH_STOP;
      endings.cancelled += end == LLMC_FINISH_CANCELLED;
      endings.late += end == LLMC_FINISH_DEADLINE;
      endings.wrong += whole && tokens.size() != right.size();
    } catch (const Error &error) {
      endings.failed += error.status() == LLMC_DEVICE_ERROR;
    }
    endings.wrong += tokens.size() > right.size() ||
                     !std::equal(tokens.begin(), tokens.end(), right.begin());
    if (!fork)
      continue;
    tokens.clear();
    end = LLMC_RUNNING;
    try {
      while (end == LLMC_RUNNING)
        read(*fork);
      endings.wrong += tokens != right; // whatever became of the first one
    } catch (const Error &) {
      endings.failed_forks++;
    }
  }
  return endings;
}

void run_clients(llmc_policy policy, int failing_period, bool overlap = false) {
  constexpr int kClients = 4, kEach = 1000;
  FailingRunner runner(24, 4, failing_period, overlap);
  KvCacheManager kv_cache(
      24, 4, {.num_host_blocks = policy == LLMC_MAX_UTILIZATION ? 12 : 0});
  ModelInfo model;
  Executor executor(
      runner, kv_cache,
      {.max_batch_size = 6, .max_num_tokens = 24, .policy = policy}, model);
  std::vector<Endings> endings(kClients);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kClients; ++i)
    threads.emplace_back(
        [&, i] { endings[i] = client(executor, 10 + i, kEach); });
  for (std::thread &thread : threads)
    thread.join();
  Endings sum;
  for (const Endings &one : endings) {
    sum.whole += one.whole, sum.cancelled += one.cancelled;
    sum.late += one.late, sum.failed += one.failed, sum.wrong += one.wrong;
    sum.stopped += one.stopped, sum.failed_forks += one.failed_forks;
  }
  CHECK_EQ(sum.wrong, 0);
  CHECK_EQ(sum.whole + sum.cancelled + sum.late + sum.failed,
           kClients * kEach); // each ended, and once
  CHECK(sum.whole > 0 && sum.cancelled > 0 && sum.stopped > 0);
  CHECK_EQ(sum.failed > 0, failing_period > 0);
  CHECK_EQ(sum.failed_forks > 0, failing_period > 0);
  llmc_engine_stats stats = executor.stats();
  CHECK_EQ(stats.blocks_used, 0);
  CHECK_EQ(stats.num_running, 0);
  CHECK_EQ(stats.num_waiting, 0);
  CHECK(stats.num_reused_tokens > 0);
  CHECK(stats.num_forks > 0);
  CHECK(stats.num_partially_reused_tokens > 0);
  CHECK_EQ(stats.host_blocks_used, 0);
  CHECK_EQ(stats.num_blocks_swapped_in > 0, policy == LLMC_MAX_UTILIZATION);
  CHECK_EQ(stats.num_failed_steps > 0, failing_period > 0);
  CHECK_EQ(runner.num_pending_tokens > 0, overlap);
  if (failing_period == 1)
    CHECK_EQ(stats.consecutive_failed_steps, stats.num_failed_steps);
}

} // namespace

TEST(random_clients_without_eviction) {
  run_clients(LLMC_GUARANTEED_NO_EVICT, 0);
}
TEST(random_clients_with_eviction) { run_clients(LLMC_MAX_UTILIZATION, 0); }
TEST(random_clients_with_failing_steps) {
  run_clients(LLMC_MAX_UTILIZATION, 37);
}
TEST(random_clients_with_overlap) {
  for (llmc_policy policy :
       {LLMC_GUARANTEED_NO_EVICT, LLMC_MAX_UTILIZATION, LLMC_STATIC_BATCH})
    run_clients(policy, 0, /*overlap=*/true);
}
TEST(random_clients_with_overlap_and_failing_steps) {
  for (llmc_policy policy : {LLMC_GUARANTEED_NO_EVICT, LLMC_MAX_UTILIZATION})
    run_clients(policy, 37, /*overlap=*/true);
}

TEST_MAIN()
