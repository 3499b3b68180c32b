// Prefix reuse, deadlines, priorities and queue limits through the C API on the
// toy engine, whose every token depends on the whole KV cache of its request.
#include "check.h"

#include "client.h"
#include "toy_engine.h"

#include <future>
#include <random>

using namespace llmc::test;

namespace {

struct Case {
  Tokens prompt;
  llmc_sampling_params params;
};

// Prompts with a few common beginnings, some of them whole blocks long.
std::vector<Case> cases_with_common_beginnings(int count) {
  std::mt19937 rng(3);
  std::vector<Tokens> beginnings;
  for (size_t length : {4, 8, 13, 24, 40}) {
    beginnings.emplace_back(length);
    for (int32_t &token : beginnings.back())
      token = static_cast<int32_t>(rng() % 64);
  }
  std::vector<Case> cases;
  for (int i = 0; i < count; ++i) {
    Case one{beginnings[rng() % beginnings.size()],
             greedy(1 + static_cast<int>(rng() % 40))};
    for (unsigned n = rng() % 9; n > 0; --n)
      one.prompt.push_back(static_cast<int32_t>(rng() % 64));
    if (i % 3 == 0) {
      one.params.temperature = 0.8f;
      one.params.has_seed = 1;
      one.params.seed = static_cast<uint64_t>(i);
    }
    one.params.ignore_eos = 1;
    cases.push_back(one);
  }
  return cases;
}

std::vector<Tokens> run_together(Engine &engine, std::vector<Case> &cases) {
  std::vector<llmc_request *> requests;
  for (const Case &one : cases)
    requests.push_back(submit(engine, one.prompt, one.params));
  std::vector<Tokens> outputs;
  for (llmc_request *request : requests)
    outputs.push_back(finish(request));
  return outputs;
}

} // namespace

TEST(reuse_chunks_and_preemption_change_no_token) {
  ToyEngine toy;
  std::vector<Case> cases = cases_with_common_beginnings(40);
  std::vector<Tokens> alone;
  {
    llmc_engine_options off = llmc_engine_options_default();
    off.enable_block_reuse = 0;
    Engine engine(toy.path(), off);
    for (const Case &one : cases)
      alone.push_back(finish(submit(engine, one.prompt, one.params)));
    CHECK_EQ(engine.stats().num_reused_tokens, 0);
    CHECK_EQ(engine.stats().blocks_idle, 0);
  }
  for (llmc_policy policy :
       {LLMC_GUARANTEED_NO_EVICT, LLMC_MAX_UTILIZATION, LLMC_STATIC_BATCH})
    for (int max_num_tokens : {5, 32})
      for (int pool_tokens : {96, 160, 1024})
        for (int reuse : {0, 1}) {
          llmc_engine_options options = llmc_engine_options_default();
          options.policy = policy;
          options.max_num_tokens = max_num_tokens;
          options.kv_cache_tokens = pool_tokens;
          options.enable_block_reuse = reuse;
          Engine engine(toy.path(), options);
          for (int round = 0; round < 2; ++round)
            CHECK(run_together(engine, cases) == alone);
          llmc_engine_stats stats = engine.stats();
          CHECK_EQ(stats.blocks_used, 0);
          CHECK_EQ(stats.num_reused_tokens > 0, reuse == 1);
          if (policy == LLMC_MAX_UTILIZATION && pool_tokens == 96)
            CHECK(stats.num_preemptions > 0);
        }
}

TEST(a_request_says_what_it_reused) {
  ToyEngine toy;
  Engine engine(toy.path());
  llmc_sampling_params params = greedy(3);
  params.ignore_eos = 1;
  auto reused = [&](const Tokens &prompt) {
    llmc_request *request = submit(engine, prompt, params);
    llmc_token token;
    size_t n = 0;
    llmc_finish end = LLMC_RUNNING;
    while (end == LLMC_RUNNING)
      REQUIRE(llmc_request_next(request, &token, 1, 30, &n, &end) == LLMC_OK);
    int32_t count = llmc_request_reused_tokens(request);
    llmc_request_free(request);
    return count;
  };
  CHECK_EQ(reused(Tokens(13, 9)), 0);
  CHECK_EQ(reused(Tokens(13, 9)), 12);
  params.cache_salt = 5;
  CHECK_EQ(reused(Tokens(13, 9)), 0);
  CHECK_EQ(reused(Tokens(30, 9)), 12);
}

TEST(a_request_ends_at_its_deadline) {
  ToyEngine toy;
  Engine engine(toy.path());
  llmc_sampling_params params = greedy(100);
  params.timeout_seconds = 1e-9;
  llmc_finish end;
  finish(submit(engine, {1, 2, 3}, params), &end);
  CHECK(end == LLMC_FINISH_DEADLINE);
  CHECK_EQ(engine.stats().blocks_used, 0);
  CHECK_EQ(engine.stats().num_deadlines_missed, 1);
  params.timeout_seconds = 1e9; // and one that lies far away does not
  params.ignore_eos = 1;
  CHECK_EQ(finish(submit(engine, {1, 2, 3}, params), &end).size(), 100);
  CHECK(end == LLMC_FINISH_LENGTH);
}

TEST(a_full_queue_refuses_with_numbers) {
  ToyEngine toy;
  llmc_engine_options options = llmc_engine_options_default();
  options.max_waiting = 1;
  Engine engine(toy.path(), options);
  struct Gate {
    std::promise<void> reached, open;
    std::shared_future<void> opened = open.get_future().share();
    bool first = true;
  } gate;
  // Holds the executor in its first callback, so that the next one must wait.
  auto callback = [](void *user, const llmc_token *, size_t, llmc_finish) {
    auto *gate = static_cast<Gate *>(user);
    if (std::exchange(gate->first, false)) {
      gate->reached.set_value();
      gate->opened.wait();
    }
  };
  llmc_sampling_params params = greedy(2);
  int32_t prompt[] = {4, 5};
  llmc_request *first = nullptr, *refused = nullptr;
  REQUIRE(llmc_engine_submit(engine, prompt, 2, &params, callback, &gate,
                             &first) == LLMC_OK);
  gate.reached.get_future().wait();
  llmc_request *second = submit(engine, {1}, params);
  CHECK_EQ(llmc_engine_submit(engine, prompt, 2, &params, nullptr, nullptr,
                              &refused),
           LLMC_REFUSED);
  CHECK(std::string(llmc_last_error())
            .starts_with("1 requests wait already, max_waiting is 1"));
  gate.open.set_value();
  finish(second);
  finish(submit(engine, {1}, params));
  llmc_request_free(first);
}

TEST(bad_serving_options_are_named) {
  ToyEngine toy;
  llmc_engine_options options = llmc_engine_options_default();
  options.policy = static_cast<llmc_policy>(3);
  CHECK(THROWN(std::runtime_error, Engine(toy.path(), options))
            .starts_with("policy must be"));
  options = llmc_engine_options_default();
  options.max_waiting = -1;
  CHECK(THROWN(std::runtime_error, Engine(toy.path(), options))
            .starts_with("max_waiting"));
  Engine engine(toy.path());
  llmc_sampling_params params = greedy(1);
  params.priority = 101;
  CHECK(THROWN(std::runtime_error, submit(engine, {1}, params))
            .starts_with("priority must be in [-100, 100]"));
  params = greedy(1);
  params.timeout_seconds = -1;
  CHECK(THROWN(std::runtime_error, submit(engine, {1}, params))
            .starts_with("timeout_seconds"));
  llmc_request *request = submit(engine, {1}, greedy(1));
  CHECK_EQ(llmc_request_set_priority(request, -101), LLMC_INVALID_ARGUMENT);
  CHECK_EQ(llmc_request_set_priority(request, -100), LLMC_OK);
  llmc_request_free(request);
}

TEST_MAIN()
