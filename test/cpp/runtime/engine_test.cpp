// End to end through the C API on the toy engine, whose every token depends on
// the whole KV cache of its request.
#include "check.h"

#include "client.h"
#include "toy_engine.h"

#include <chrono>
#include <random>
#include <thread>
#include <vector>

using namespace llmc::test;

namespace {

struct Case {
  Tokens prompt;
  llmc_sampling_params params;
};

std::vector<Case> mixed_cases(int count, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<Case> cases;
  for (int i = 0; i < count; ++i) {
    Case one{Tokens(1 + rng() % 60), greedy(1 + static_cast<int>(rng() % 50))};
    for (int32_t &token : one.prompt)
      token = static_cast<int32_t>(rng() % 64);
    if (i % 3 == 0) { // sampled requests are batch-invariant as well
      one.params.temperature = 0.5f + static_cast<float>(i) * 0.05f;
      one.params.top_p = 0.9f;
      one.params.has_seed = 1;
      one.params.seed = 1000u + static_cast<uint64_t>(i);
    }
    one.params.ignore_eos = i % 4 == 0;
    cases.push_back(one);
  }
  return cases;
}

uint32_t mix(uint32_t h, uint32_t v) {
  h ^= v + 0x9e3779b9u + (h << 6) + (h >> 2);
  h *= 0x85ebca6bu;
  return h ^ (h >> 13);
}

// The toy model without any cache: what toy/host.c must choose after `tokens`.
int32_t greedy_by_hand(const Tokens &tokens) {
  uint32_t h = 1;
  for (int32_t token : tokens)
    for (uint32_t head = 0; head < 2; ++head)
      h = mix(h, static_cast<uint32_t>(token) * 2 + head);
  h = mix(h, static_cast<uint32_t>(tokens.back()));
  int32_t best = 0;
  float best_logit = -1;
  for (uint32_t token = 0; token < 64; ++token) {
    float logit = static_cast<float>(mix(h, token * 2654435761u) >> 16) *
                      0.0001220703125f +
                  static_cast<float>(token % 7) * 0.25f;
    if (logit > best_logit) {
      best = static_cast<int32_t>(token);
      best_logit = logit;
    }
  }
  return best;
}

// Each request alone, then all of them at random moments; every token must
// agree and no block stay behind.
void check_same_alone_and_together(const llmc_engine_options &options,
                                   bool expect_preemptions = false) {
  ToyEngine toy;
  std::vector<Case> cases = mixed_cases(32, 7);
  std::vector<Tokens> alone;
  {
    Engine engine(toy.path());
    for (const Case &one : cases)
      alone.push_back(finish(submit(engine, one.prompt, one.params)));
  }
  Engine engine(toy.path(), options);
  std::mt19937 rng(11);
  for (int round = 0; round < 3; ++round) {
    std::vector<llmc_request *> requests;
    for (const Case &one : cases) {
      requests.push_back(submit(engine, one.prompt, one.params));
      if (rng() % 2)
        std::this_thread::sleep_for(std::chrono::microseconds(rng() % 300));
    }
    for (size_t i = 0; i < cases.size(); ++i)
      CHECK(finish(requests[i]) == alone[i]);
    CHECK_EQ(engine.stats().blocks_used, 0);
    CHECK_EQ(engine.stats().num_running, 0);
    CHECK_EQ(engine.stats().num_waiting, 0);
  }
  if (expect_preemptions)
    CHECK(engine.stats().num_preemptions > 0);
}

} // namespace

// Without this, kernels that never run would agree with themselves below.
TEST(tokens_are_those_of_the_model) {
  ToyEngine toy;
  Engine engine(toy.path());
  for (size_t length : {1, 2, 3, 4, 31, 32, 33, 70}) {
    Tokens prompt(length), expected;
    for (size_t i = 0; i < length; ++i)
      prompt[i] = static_cast<int32_t>((i * 7 + length) % 64);
    Tokens all = prompt;
    for (int i = 0; i < 40; ++i) {
      expected.push_back(greedy_by_hand(all));
      all.push_back(expected.back());
    }
    llmc_sampling_params params = greedy(40);
    params.ignore_eos = 1;
    CHECK(finish(submit(engine, prompt, params)) == expected);
  }
}

TEST(batched_requests_give_what_each_gives_alone) {
  check_same_alone_and_together(llmc_engine_options_default());
}

TEST(so_they_do_with_a_pool_for_one_request) {
  llmc_engine_options options = llmc_engine_options_default();
  options.kv_cache_tokens = 112; // the largest of the 32 needs 27 blocks of 4
  check_same_alone_and_together(options);
}

TEST(so_they_do_with_tiny_prefill_chunks) {
  llmc_engine_options options = llmc_engine_options_default();
  options.max_num_tokens = 8;
  options.max_batch_size = 5;
  check_same_alone_and_together(options);
}

TEST(so_they_do_when_preempted_and_recomputed) {
  llmc_engine_options options = llmc_engine_options_default();
  options.policy = LLMC_MAX_UTILIZATION;
  options.kv_cache_tokens = 160;
  check_same_alone_and_together(options, /*expect_preemptions=*/true);
}

TEST(cancel_frees_blocks_within_a_step) {
  ToyEngine toy;
  Engine engine(toy.path());
  llmc_sampling_params params = greedy(100);
  params.ignore_eos = 1;
  for (int i = 0; i < 200; ++i) {
    llmc_request *request = submit(engine, Tokens(20, 5), params);
    llmc_token token;
    size_t n;
    llmc_finish end;
    REQUIRE(llmc_request_next(request, &token, 1, 30, &n, &end) == LLMC_OK);
    llmc_request_cancel(request);
    while (end == LLMC_RUNNING)
      REQUIRE(llmc_request_next(request, &token, 1, 30, &n, &end) == LLMC_OK);
    CHECK(end == LLMC_FINISH_CANCELLED || end == LLMC_FINISH_LENGTH);
    CHECK_EQ(engine.stats().blocks_used, 0);
    llmc_request_free(request);
  }
}

TEST(freeing_the_engine_ends_running_requests) {
  ToyEngine toy;
  auto engine = std::make_unique<Engine>(toy.path());
  llmc_sampling_params params = greedy(100);
  params.ignore_eos = 1;
  std::vector<llmc_request *> requests;
  for (int i = 0; i < 20; ++i)
    requests.push_back(submit(*engine, Tokens(20, 5), params));
  engine.reset();
  for (llmc_request *request : requests) {
    llmc_finish end;
    finish(request, &end);
    CHECK(end == LLMC_FINISH_CANCELLED || end == LLMC_FINISH_LENGTH);
  }
}

TEST(stop_conditions) {
  ToyEngine toy;
  Engine engine(toy.path());
  llmc_sampling_params params = greedy(60);
  params.ignore_eos = 1;
  llmc_finish end;
  Tokens all = finish(submit(engine, {1, 2, 3}, params), &end);
  CHECK_EQ(all.size(), 60);
  CHECK(end == LLMC_FINISH_LENGTH);

  int32_t stop = all[10];
  size_t first = static_cast<size_t>(std::find(all.begin(), all.end(), stop) -
                                     all.begin());
  params.stop_token_ids = &stop;
  params.num_stop_token_ids = 1;
  Tokens stopped = finish(submit(engine, {1, 2, 3}, params), &end);
  CHECK_EQ(stopped.size(), first + 1);
  CHECK(end == LLMC_FINISH_STOP);

  llmc_sampling_params longest = greedy(1000);
  longest.ignore_eos = 1;
  CHECK_EQ(finish(submit(engine, Tokens(100, 1), longest), &end).size(),
           28); // max_seq_len 128
  CHECK(end == LLMC_FINISH_LENGTH);
}

TEST(eos_ends_a_request_unless_ignored) {
  // Every token is an eos, so that the first one ends the request.
  ToyEngine toy([](auto &manifest, auto &) {
    manifest["model"]["eos_token_ids"] = nlohmann::json::array();
    for (int i = 0; i < 64; ++i)
      manifest["model"]["eos_token_ids"].push_back(i);
  });
  Engine engine(toy.path());
  llmc_sampling_params params = greedy(5);
  llmc_finish end;
  CHECK_EQ(finish(submit(engine, {1}, params), &end).size(), 1);
  CHECK(end == LLMC_FINISH_STOP);
  params.ignore_eos = 1;
  CHECK_EQ(finish(submit(engine, {1}, params), &end).size(), 5);
  CHECK(end == LLMC_FINISH_LENGTH);
}

TEST(refusals_name_the_numbers) {
  ToyEngine toy;
  llmc_engine_options options = llmc_engine_options_default();
  options.kv_cache_tokens = 40;
  Engine engine(toy.path(), options);
  auto refusal = [&](const Tokens &prompt, const llmc_sampling_params &params) {
    llmc_request *request = nullptr;
    CHECK_EQ(llmc_engine_submit(engine, prompt.data(), prompt.size(), &params,
                                nullptr, nullptr, &request),
             LLMC_REFUSED);
    CHECK(request == nullptr);
    return std::string(llmc_last_error());
  };
  CHECK(refusal({}, greedy(1)).find("empty") != std::string::npos);
  CHECK(refusal({1, 64}, greedy(1)).find("token id 64 at position 1") !=
        std::string::npos);
  CHECK(refusal({-1}, greedy(1)).find("token id -1") != std::string::npos);
  std::string too_long = refusal(Tokens(128, 1), greedy(1));
  CHECK(too_long.find("128 tokens") != std::string::npos &&
        too_long.find("max_seq_len 128") != std::string::npos);
  std::string too_large = refusal(Tokens(30, 1), greedy(20));
  CHECK(too_large.find("13 KV blocks") != std::string::npos &&
        too_large.find("pool has 10") != std::string::npos);
}

TEST(bad_sampling_parameters_are_named) {
  ToyEngine toy;
  Engine engine(toy.path());
  auto message = [&](auto &&edit) {
    llmc_sampling_params params = greedy(4);
    edit(params);
    int32_t token = 1;
    llmc_request *request = nullptr;
    CHECK_EQ(llmc_engine_submit(engine, &token, 1, &params, nullptr, nullptr,
                                &request),
             LLMC_INVALID_ARGUMENT);
    return std::string(llmc_last_error());
  };
  CHECK(
      message([](auto &p) { p.temperature = -1; }).starts_with("temperature"));
  CHECK(
      message([](auto &p) { p.temperature = NAN; }).starts_with("temperature"));
  CHECK(message([](auto &p) { p.top_p = 0; }).starts_with("top_p"));
  CHECK(message([](auto &p) { p.top_p = 1.5f; }).starts_with("top_p"));
  CHECK(message([](auto &p) { p.min_p = -0.1f; }).starts_with("min_p"));
  CHECK(message([](auto &p) { p.top_k = -2; }).starts_with("top_k"));
  CHECK(message([](auto &p) { p.max_tokens = 0; }).starts_with("max_tokens"));
  int32_t outside = 64;
  CHECK(message([&](auto &p) {
          p.stop_token_ids = &outside;
          p.num_stop_token_ids = 1;
        }).starts_with("stop_token_ids"));
}

TEST(callbacks_see_every_token_and_the_end) {
  ToyEngine toy;
  Engine engine(toy.path());
  llmc_sampling_params params = greedy(12);
  params.ignore_eos = 1;
  Tokens expected = finish(submit(engine, {4, 5}, params));
  struct Seen {
    Tokens tokens;
    std::atomic<llmc_finish> finish{LLMC_RUNNING};
  } seen;
  auto callback = [](void *user, const llmc_token *tokens, size_t n,
                     llmc_finish finish) {
    auto *out = static_cast<Seen *>(user);
    for (size_t i = 0; i < n; ++i)
      out->tokens.push_back(tokens[i].id);
    out->finish = finish;
  };
  llmc_request *request = nullptr;
  int32_t prompt[] = {4, 5};
  REQUIRE(llmc_engine_submit(engine, prompt, 2, &params, callback, &seen,
                             &request) == LLMC_OK);
  while (seen.finish == LLMC_RUNNING)
    std::this_thread::yield();
  CHECK(seen.tokens == expected);
  CHECK(seen.finish == LLMC_FINISH_LENGTH);
  llmc_request_free(request);
}

TEST(logits_that_are_no_numbers_fail_the_request_only) {
  ToyEngine toy([](auto &, auto &plan) {
    for (auto &range : plan["ranges"])
      range["launches"][1]["args"][12] = {{"f32", 1e39}}; // infinite as a float
  });
  Engine engine(toy.path());
  llmc_sampling_params params = greedy(4);
  int32_t prompt[] = {4, 5};
  llmc_request *request = nullptr;
  REQUIRE(llmc_engine_submit(engine, prompt, 2, &params, nullptr, nullptr,
                             &request) == LLMC_OK);
  llmc_token token;
  size_t n;
  llmc_finish end;
  CHECK_EQ(llmc_request_next(request, &token, 1, 30, &n, &end),
           LLMC_DEVICE_ERROR);
  CHECK(std::string(llmc_last_error()).find("not numbers") !=
        std::string::npos);
  CHECK_EQ(engine.stats().blocks_used, 0);
  llmc_request_free(request);
}

TEST_MAIN()
