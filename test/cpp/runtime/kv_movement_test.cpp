// Forks, parts of blocks and host memory through the engine: the same tokens as
// alone, on the host backend and, over the stand-in for libcuda, on the CUDA
// backend with and without overlap.
#include "fake_gpu.h"
#include "llmc/llmc.h"

using namespace llmc;
using namespace llmc::test;

namespace {

struct Device {
  const char *name;
  ToyEngine::Edit edit;
  int overlap;
};

std::vector<Device> devices() {
  return {{"host", {}, 0}, {"gpu", sampling, 0}, {"gpu, overlap", sampling, 1}};
}

Tokens prompt_of(int i) {
  Tokens prompt(static_cast<size_t>(5 + i * 7 % 23), i % 3);
  prompt.back() = i % 64;
  return prompt;
}

SamplingParams sampled(int i) {
  SamplingParams params = greedy(20 + i % 9);
  params.temperature = i % 2 ? 1.0f : 0.0f;
  params.seed = static_cast<uint64_t>(i);
  return params;
}

Tokens read(llmc_request *request) {
  Tokens tokens;
  for (llmc_finish end = LLMC_RUNNING; end == LLMC_RUNNING;) {
    llmc_token out[3];
    size_t n = 0;
    REQUIRE(llmc_request_next(request, out, 3, 30, &n, &end) == LLMC_OK);
    for (size_t i = 0; i < n; ++i)
      tokens.push_back(out[i].id);
  }
  return tokens;
}

std::vector<Tokens> alone(const std::string &path, llmc_engine_options chosen,
                          int count) {
  chosen.enable_block_reuse = 0;
  auto engine = Engine::load(path, chosen);
  std::vector<Tokens> all;
  for (int i = 0; i < count; ++i)
    all.push_back(
        read_all(*engine->submit(prompt_of(i), sampled(i), nullptr, nullptr)));
  return all;
}

} // namespace

TEST(swapping_changes_no_token) {
  for (const Device &device : devices()) {
    ToyEngine toy(device.edit);
    llmc_engine_options chosen = options();
    chosen.overlap = device.overlap;
    std::vector<Tokens> right = alone(toy.path(), chosen, 24);
    for (int reuse : {0, 1})
      for (int64_t host_bytes :
           {0, 400, 100000}) { // none, a few blocks, enough
        chosen.policy = LLMC_MAX_UTILIZATION;
        chosen.kv_cache_tokens = 64;
        chosen.max_num_tokens = 8; // prompts in chunks
        chosen.enable_block_reuse = reuse;
        chosen.host_memory_bytes = host_bytes;
        auto engine = Engine::load(toy.path(), chosen);
        std::vector<std::shared_ptr<RequestStream>> streams;
        for (int i = 0; i < 24; ++i)
          streams.push_back(
              engine->submit(prompt_of(i), sampled(i), nullptr, nullptr));
        for (size_t i = 0; i < streams.size(); ++i)
          CHECK(read_all(*streams[i]) == right[i]);
        llmc_engine_stats stats = engine->stats();
        CHECK(stats.num_preemptions > 0);
        CHECK_EQ(stats.num_blocks_swapped_out > 0, host_bytes > 0);
        CHECK_EQ(stats.num_blocks_swapped_in > 0, host_bytes > 0);
        CHECK_EQ(stats.host_blocks_total > 0, host_bytes > 0);
        CHECK_EQ(stats.blocks_used, 0);
        CHECK_EQ(stats.host_blocks_used, 0);
      }
  }
  check_nothing_leaked();
}

TEST(forks_give_the_tokens_of_single_requests) {
  for (const Device &device : devices()) {
    ToyEngine toy(device.edit);
    for (int reuse : {0, 1})
      for (int prompt_tokens : {1, 8, 30}) {
        llmc_engine_options chosen = options();
        chosen.overlap = device.overlap;
        chosen.enable_block_reuse = reuse;
        chosen.max_num_tokens = 8;
        Tokens prompt(static_cast<size_t>(prompt_tokens), 5);
        std::vector<Tokens> right;
        {
          auto engine = Engine::load(toy.path(), chosen);
          for (int i = 0; i < 5; ++i)
            right.push_back(read_all(
                *engine->submit(prompt, sampled(i), nullptr, nullptr)));
        }
        auto engine = Engine::load(toy.path(), chosen);
        std::vector<Submission> submissions(5);
        for (int i = 0; i < 5; ++i)
          submissions[static_cast<size_t>(i)].params = sampled(i);
        auto streams = engine->submit(prompt, submissions);
        for (size_t i = 0; i < streams.size(); ++i)
          CHECK(read_all(*streams[i]) == right[i]);
        llmc_engine_stats stats = engine->stats();
        CHECK_EQ(stats.num_forks, 4);
        // The prompt once, and its last token for each fork (a step of one
        // token counts as a prompt's while it is the prompt's).
        CHECK_EQ(stats.num_prompt_tokens, prompt_tokens + 4);
        CHECK_EQ(stats.blocks_used, 0);
      }
  }
  check_nothing_leaked();
}

TEST(parts_of_blocks_change_no_token) {
  for (const Device &device : devices()) {
    ToyEngine toy(device.edit);
    llmc_engine_options chosen = options();
    chosen.overlap = device.overlap;
    std::vector<Tokens> right = alone(toy.path(), chosen, 24);
    for (int partial : {0, 1}) {
      chosen.enable_partial_reuse = partial;
      auto engine = Engine::load(toy.path(), chosen);
      for (int i = 0; i < 24; ++i)
        CHECK(read_all(*engine->submit(prompt_of(i), sampled(i), nullptr,
                                       nullptr)) ==
              right[static_cast<size_t>(i)]);
      CHECK_EQ(engine->stats().num_partially_reused_tokens > 0, partial != 0);
    }
  }
}

TEST(each_fork_ends_by_itself) {
  ToyEngine toy(sampling);
  auto engine = Engine::load(toy.path(), options());
  std::vector<Submission> submissions(4);
  for (int i = 0; i < 4; ++i)
    submissions[static_cast<size_t>(i)].params = greedy(10 * (i + 1));
  auto streams = engine->submit(Tokens(9, 1), submissions);
  streams[0]->cancel(); // the leader
  Tokens longest = read_all(*streams[3]);
  CHECK_EQ(longest.size(), 40);
  for (size_t i : {1, 2}) {
    Tokens tokens = read_all(*streams[i]);
    CHECK_EQ(tokens.size(), 10 * (i + 1));
    CHECK(std::equal(tokens.begin(), tokens.end(), longest.begin()));
  }
}

TEST(bad_options_of_the_cache_are_named) {
  ToyEngine toy;
  llmc_engine_options chosen = options();
  chosen.host_memory_bytes = 1000;
  CHECK(has(THROWN(Error, Engine::load(toy.path(), chosen)),
            "host_memory_bytes must be 0, or positive with policy "
            "max_utilization"));
  chosen.policy = LLMC_MAX_UTILIZATION;
  chosen.host_memory_bytes = 3;
  CHECK(has(THROWN(Error, Engine::load(toy.path(), chosen)),
            "host_memory_bytes must be 0 or hold a KV block"));
  chosen.host_memory_bytes = int64_t{1} << 55;
  CHECK(has(THROWN(Error, Engine::load(toy.path(), chosen)),
            "KV blocks on the host"));
  auto engine = Engine::load(toy.path(), options());
  CHECK(has(THROWN(Error, engine->submit(Tokens{1}, greedy(1), nullptr, nullptr,
                                         {.retention_priority = 101})),
            "retention_priority must be in [0, 100]"));
  std::vector<Submission> submissions(2);
  submissions[1].serving.cache_salt = 1;
  CHECK(has(THROWN(Error, engine->submit(Tokens{1}, submissions)),
            "must have the same cache_salt"));
}

TEST(forks_through_the_c_api) {
  ToyEngine toy;
  llmc_engine *engine = nullptr;
  REQUIRE(llmc_engine_load(toy.path().c_str(), nullptr, &engine) == LLMC_OK);
  const int32_t prompt[] = {1, 2, 3, 4, 5, 6};
  llmc_sampling_params params[3];
  for (auto &one : params) {
    one = llmc_sampling_params_default();
    one.has_seed = 1, one.ignore_eos = 1;
    one.seed = static_cast<uint64_t>(&one - params);
  }
  llmc_request *requests[3] = {};
  REQUIRE(llmc_engine_submit_forks(engine, prompt, 6, params, 3, nullptr,
                                   nullptr, requests) == LLMC_OK);
  for (size_t i = 0; i < 3; ++i) {
    llmc_request *single = nullptr;
    REQUIRE(llmc_engine_submit(engine, prompt, 6, &params[i], nullptr, nullptr,
                               &single) == LLMC_OK);
    CHECK(read(requests[i]) == read(single));
    llmc_request_free(single), llmc_request_free(requests[i]);
  }
  params[1].top_p = 2; // all of them or none
  CHECK_EQ(llmc_engine_submit_forks(engine, prompt, 6, params, 3, nullptr,
                                    nullptr, requests),
           LLMC_INVALID_ARGUMENT);
  CHECK(requests[0] == nullptr);
  CHECK_EQ(llmc_engine_submit_forks(engine, prompt, 6, params, 0, nullptr,
                                    nullptr, requests),
           LLMC_INVALID_ARGUMENT);
  llmc_engine_free(engine);
}

TEST_MAIN()
