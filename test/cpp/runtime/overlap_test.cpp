// Steps that are started while the one before runs give the tokens of steps
// that wait for each other, on the stand-in for libcuda, which computes as late
// as it can.
#include "fake_gpu.h"

#include <algorithm>
#include <random>

using namespace llmc;
using namespace llmc::test;

namespace {

llmc_engine_options with(bool overlap) {
  llmc_engine_options result = options();
  result.overlap = overlap;
  return result;
}

struct Ending {
  Tokens tokens;
  llmc_finish finish;
  bool operator==(const Ending &) const = default;
};

Ending read(RequestStream &stream) {
  Ending ending{{}, LLMC_RUNNING};
  while (ending.finish == LLMC_RUNNING) {
    llmc_token out[8];
    size_t n = stream.next(out, 8, 30, ending.finish);
    for (size_t i = 0; i < n; ++i)
      ending.tokens.push_back(out[i].id);
  }
  return ending;
}

// Requests of all kinds at once: long and short prompts, ends by length, by eos
// and by stop tokens, some with logprobs.
std::vector<Ending> run(const std::string &path, llmc_engine_options chosen,
                        bool logprobs = false, int max_tokens = 0) {
  chosen.max_num_tokens = max_tokens; // small: prompts in chunks
  auto engine = Engine::load(path, chosen);
  std::vector<std::shared_ptr<RequestStream>> streams;
  for (int i = 0; i < 40; ++i) {
    SamplingParams params = greedy(1 + i * 7 % 40);
    params.ignore_eos = i % 3 != 0;
    if (i % 4 == 1)
      params.stop_token_ids = {i % 64, (i * 5) % 64, (i * 11) % 64, 7, 23};
    params.logprobs = logprobs && i % 5 == 0 ? 0 : -1;
    streams.push_back(
        engine->submit(Tokens(static_cast<size_t>(1 + i * 13 % 80), i), params,
                       nullptr, nullptr));
  }
  std::vector<Ending> all;
  for (auto &stream : streams)
    all.push_back(read(*stream));
  CHECK_EQ(engine->stats().blocks_used, 0);
  return all;
}

} // namespace

TEST(tokens_are_the_same_bits) {
  ToyEngine host, gpu(sampling);
  std::vector<Ending> expected =
      run(host.path(), llmc_engine_options_default());
  int by_stop = 0;
  for (const Ending &one : expected)
    by_stop += one.finish == LLMC_FINISH_STOP;
  CHECK(by_stop > 3); // rows too many were computed
  for (bool graphs : {false, true})
    for (bool reuse : {false, true})
      for (bool logprobs : {false, true})
        for (int max_tokens : {0, 9})
          for (llmc_policy policy : {LLMC_GUARANTEED_NO_EVICT,
                                     LLMC_MAX_UTILIZATION, LLMC_STATIC_BATCH}) {
            llmc_engine_options chosen = with(true);
            chosen.cuda_graphs = graphs;
            chosen.enable_block_reuse = reuse;
            chosen.policy = policy;
            chosen.kv_cache_tokens = 400; // full now and then
            int64_t copies = cuda().device_copies;
            CHECK(run(gpu.path(), chosen, logprobs, max_tokens) == expected);
            CHECK(cuda().device_copies > copies);
            chosen.overlap = 0;
            copies = cuda().device_copies;
            CHECK(run(gpu.path(), chosen, logprobs, max_tokens) == expected);
            CHECK_EQ(cuda().device_copies, copies);
          }
  check_nothing_leaked();
}

// Where the host has work between two steps they are not overlapped.
TEST(requests_with_logprobs_wait_for_their_tokens) {
  ToyEngine gpu(sampling);
  auto engine = Engine::load(gpu.path(), with(true));
  SamplingParams params = greedy(20);
  params.logprobs = 0;
  int64_t copies = cuda().device_copies;
  auto stream = engine->submit(Tokens{1, 2, 3}, params, nullptr, nullptr);
  CHECK_EQ(read_all(*stream).size(), 20);
  CHECK_EQ(cuda().device_copies, copies);
}

// Decodes keep their order, so their tokens move together.
TEST(one_copy_moves_the_tokens_of_a_batch) {
  ToyEngine gpu(sampling);
  auto engine = Engine::load(gpu.path(), with(true));
  int64_t copies = cuda().device_copies, before = engine->stats().num_steps;
  std::vector<std::shared_ptr<RequestStream>> streams;
  for (int i = 0; i < 6; ++i)
    streams.push_back(
        engine->submit(Tokens{1, 2, i}, greedy(50), nullptr, nullptr));
  for (auto &stream : streams)
    CHECK_EQ(read_all(*stream).size(), 50);
  int64_t steps = engine->stats().num_steps - before;
  CHECK(cuda().device_copies - copies <= steps);
}

TEST(a_failed_step_takes_the_one_behind_it_along_and_nobody_else) {
  ToyEngine gpu(sampling);
  llmc_engine_options one = with(true);
  one.max_batch_size = 1;
  Tokens expected =
      read_all(*Engine::load(gpu.path(), with(false))
                    ->submit(Tokens{4, 5}, greedy(10), nullptr, nullptr));
  for (const char *function :
       {"cuEventQuery", "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
        "cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuGraphLaunch"})
    for (int after = 0; after < 9; after += 2) {
      auto engine = Engine::load(gpu.path(), one);
      Failure failure(function, 1, after); // an error that does not stay
      auto first = engine->submit(Tokens{1, 2}, greedy(30), nullptr, nullptr);
      auto second = engine->submit(Tokens{4, 5}, greedy(10), nullptr, nullptr);
      CHECK(has(THROWN(Error, read_all(*first)), "an error on demand"));
      CHECK(read_all(*second) == expected);
      CHECK_EQ(engine->stats().blocks_used, 0);
      CHECK_EQ(engine->stats().consecutive_failed_steps, 0);
    }
  check_nothing_leaked();
}

// The step before the one that cannot be started ends some of its requests: by
// a stop token, so that they have a row in it.
TEST(a_step_that_cannot_start_and_the_ends_of_the_one_before) {
  ToyEngine gpu(sampling);
  constexpr int kRequests = 6;
  std::vector<Tokens> whole;
  for (int i = 0; i < kRequests; ++i)
    whole.push_back(
        read_all(*Engine::load(gpu.path(), with(false))
                      ->submit(Tokens{i, 3}, greedy(30), nullptr, nullptr)));
  int stopped = 0, failed = 0;
  for (const char *function :
       {"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
        "cuEventRecord", "cuGraphLaunch", "cuLaunchKernelEx"})
    for (int after = 0; after < 40; ++after) {
      llmc_engine_options chosen = with(true);
      chosen.cuda_graphs = function[2] == 'G';
      auto engine = Engine::load(gpu.path(), chosen);
      Failure failure(function, 1, after);
      std::vector<std::shared_ptr<RequestStream>> streams;
      std::vector<Tokens> right = whole;
      for (int i = 0; i < kRequests; ++i) {
        SamplingParams params = greedy(30);
        Tokens &tokens = right[static_cast<size_t>(i)];
        params.stop_token_ids = {tokens[static_cast<size_t>(3 + 2 * i)]};
        tokens.resize(static_cast<size_t>(
            std::find(tokens.begin(), tokens.end(), params.stop_token_ids[0]) -
            tokens.begin() + 1));
        streams.push_back(
            engine->submit(Tokens{i, 3}, params, nullptr, nullptr));
      }
      for (int i = 0; i < kRequests; ++i) {
        Tokens got, &tokens = right[static_cast<size_t>(i)];
        try {
          llmc_finish finish = LLMC_RUNNING;
          while (finish == LLMC_RUNNING) {
            llmc_token token;
            if (streams[static_cast<size_t>(i)]->next(&token, 1, 30, finish))
              got.push_back(token.id);
          }
          CHECK_EQ(finish, LLMC_FINISH_STOP);
          CHECK(got == tokens);
          ++stopped;
        } catch (const Error &error) {
          CHECK_EQ(error.status(), LLMC_DEVICE_ERROR);
          CHECK(got.size() < tokens.size());
          CHECK(std::equal(got.begin(), got.end(), tokens.begin()));
          ++failed;
        }
      }
      CHECK_EQ(engine->stats().blocks_used, 0);
    }
  CHECK(stopped > 100 && failed > 100);
  check_nothing_leaked();
}

// What a cancelled or late request got is the beginning of its output.
TEST(cancels_and_deadlines_lose_and_double_no_token) {
  ToyEngine gpu(sampling);
  std::vector<Tokens> expected;
  {
    auto engine = Engine::load(gpu.path(), with(false));
    for (int i = 0; i < 64; ++i)
      expected.push_back(
          read_all(*engine->submit(Tokens{i}, greedy(30), nullptr, nullptr)));
  }
  auto engine = Engine::load(gpu.path(), with(true));
  std::mt19937 rng(1);
  int cut = 0, whole = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<int, std::shared_ptr<RequestStream>>> streams;
    std::vector<Tokens> begun(8);
    for (int i = 0; i < 8; ++i) {
      int first = static_cast<int>(rng() % 64);
      ServingParams serving;
      if (rng() % 4 == 0)
        serving.timeout_seconds = 1e-6 * (1 + rng() % 300);
      streams.emplace_back(first, engine->submit(Tokens{first}, greedy(30),
                                                 nullptr, nullptr, serving));
    }
    for (size_t i = 0; i < 8; ++i)
      if (rng() % 2) {
        llmc_token token;
        llmc_finish finish;
        if (rng() % 2 && streams[i].second->next(&token, 1, 30, finish))
          begun[i].push_back(token.id);
        streams[i].second->cancel();
      }
    for (size_t i = 0; i < 8; ++i) {
      Ending ending = read(*streams[i].second);
      Tokens tokens = begun[i];
      tokens.insert(tokens.end(), ending.tokens.begin(), ending.tokens.end());
      Tokens right = expected[static_cast<size_t>(streams[i].first)];
      CHECK(tokens.size() <= right.size());
      CHECK(std::equal(tokens.begin(), tokens.end(), right.begin()));
      whole += ending.finish == LLMC_FINISH_LENGTH;
      cut += ending.finish != LLMC_FINISH_LENGTH;
      if (ending.finish == LLMC_FINISH_LENGTH)
        CHECK_EQ(tokens.size(), right.size());
    }
  }
  CHECK(cut > 100 && whole > 100);
  CHECK_EQ(engine->stats().blocks_used, 0);
}

TEST_MAIN()
