// Beam search: the search itself against one that looks at everything, and
// searches of an engine under cancels and failures. What a model answers is
// compared with transformers in test/python/runtime/test_beams.py.
#include "faults.h"

#include <cmath>
#include <random>

using namespace llmc;
using namespace llmc::test;

namespace {

constexpr int kVocab = 4, kStop = 3;

// Log probabilities after some tokens, from a hash of them.
std::vector<float> distribution(const Tokens &tokens, uint64_t seed) {
  uint64_t hash = chain_start(seed);
  for (int32_t token : tokens)
    hash = chain(hash, token);
  std::vector<float> logits;
  double sum = 0;
  for (int i = 0; i < kVocab; ++i) {
    hash = chain(hash, i);
    logits.push_back(static_cast<float>(hash % 1000) / 300.0f);
    sum += std::exp(double{logits.back()});
  }
  for (float &l : logits)
    l -= static_cast<float>(std::log(sum));
  return logits;
}

struct Scored {
  Tokens tokens;
  double score;
};

void enumerate(Tokens &tokens, double sum, uint64_t seed, int max_tokens,
               double penalty, std::vector<Scored> &all) {
  std::vector<float> next = distribution(tokens, seed);
  for (int32_t token = 0; token < kVocab; ++token) {
    tokens.push_back(token);
    double score = sum + double{next[static_cast<size_t>(token)]};
    const int length = static_cast<int>(tokens.size());
    if (token == kStop || length == max_tokens)
      all.push_back({tokens, score / std::pow(length, penalty)});
    else
      enumerate(tokens, score, seed, max_tokens, penalty, all);
    tokens.pop_back();
  }
}

std::vector<BeamSearch::Answer> search(const BeamOptions &options,
                                       int max_tokens, uint64_t seed) {
  BeamSearch search(options, {kStop}, max_tokens);
  std::vector<Tokens> beams{{}};
  for (int step = 0; step < max_tokens + 1; ++step) {
    std::vector<BeamOffer> offers;
    for (const Tokens &beam : beams) {
      std::vector<float> next = distribution(beam, seed);
      BeamOffer &offer = offers.emplace_back();
      for (int32_t token = 0; token < kVocab; ++token)
        offer.candidates.push_back({token, next[static_cast<size_t>(token)],
                                    next[static_cast<size_t>(token)]});
      std::ranges::sort(offer.candidates, [](const auto &a, const auto &b) {
        return a.score > b.score;
      });
    }
    std::vector<Tokens> next;
    for (auto [parent, token] : search.step(offers)) {
      next.push_back(beams[static_cast<size_t>(parent)]);
      next.back().push_back(token);
    }
    if (next.empty())
      return search.answers();
    beams = std::move(next);
  }
  CHECK(false); // it does not end
  return {};
}

Tokens tokens_of(const BeamSearch::Answer &answer) {
  Tokens tokens;
  for (const OutputToken &token : answer.tokens)
    tokens.push_back(token.id);
  return tokens;
}

} // namespace

// With room for every beginning nothing is ever dropped.
TEST(a_search_that_is_wide_enough_finds_the_best_answers) {
  constexpr int kMaxTokens = 4, kWidth = 64;
  for (uint64_t seed = 0; seed < 40; ++seed)
    for (float penalty : {0.0f, 1.0f, -1.0f, 2.0f}) {
      std::vector<Scored> all;
      Tokens start;
      enumerate(start, 0, seed, kMaxTokens, double{penalty}, all);
      std::ranges::stable_sort(
          all, [](const auto &a, const auto &b) { return a.score > b.score; });
      auto answers =
          search({kWidth, penalty, EarlyStopping::Never}, kMaxTokens, seed);
      REQUIRE(answers.size() == kWidth);
      for (size_t i = 0; i < 20; ++i) {
        CHECK(tokens_of(answers[i]) == all[i].tokens);
        CHECK(std::abs(answers[i].score - all[i].score) < 1e-5);
        CHECK_EQ(answers[i].stopped, all[i].tokens.back() == kStop);
      }
    }
}

TEST(early_stopping_ends_with_the_first_answers) {
  int earlier = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    auto fast = search({2, 1.0f, EarlyStopping::Yes}, 12, seed),
         slow = search({2, 1.0f, EarlyStopping::Never}, 12, seed);
    REQUIRE(fast.size() == 2 && slow.size() == 2);
    CHECK(fast[0].score <= slow[0].score + 1e-9);
    earlier += fast[0].score < slow[0].score - 1e-9;
  }
  CHECK(earlier > 0);
}

namespace {

struct Found {
  std::vector<Tokens> answers;
  bool cancelled = false;
};

std::vector<std::shared_ptr<RequestStream>>
start(Engine &engine, const Tokens &prompt, int width, int output) {
  std::vector<Submission> submissions(static_cast<size_t>(width));
  for (Submission &one : submissions) {
    one.params = greedy(output);
    one.params.beams.width = width;
  }
  return engine.submit(prompt, std::move(submissions));
}

Found read(std::vector<std::shared_ptr<RequestStream>> &streams) {
  Found found;
  for (auto &stream : streams) {
    Tokens &tokens = found.answers.emplace_back();
    llmc_finish finish = LLMC_RUNNING;
    while (finish == LLMC_RUNNING) {
      llmc_token token;
      if (stream->next(&token, 1, 30, finish))
        tokens.push_back(token.id);
    }
    found.cancelled |= finish == LLMC_FINISH_CANCELLED;
  }
  return found;
}

} // namespace

// On an engine that samples on the device, with and without overlap, beside
// requests of other kinds, in a pool that is often full.
TEST(searches_among_random_cancels) {
  ToyEngine gpu(sampling);
  std::vector<Found> right;
  {
    auto engine = Engine::load(gpu.path(), options());
    for (int i = 0; i < 16; ++i) {
      auto streams = start(*engine, {i, 5, 7}, 2 + i % 2, 10);
      right.push_back(read(streams));
      REQUIRE(right.back().answers[0].size() == 10);
      CHECK(right.back().answers[0] != right.back().answers[1]);
    }
  }
  for (llmc_policy policy :
       {LLMC_GUARANTEED_NO_EVICT, LLMC_MAX_UTILIZATION, LLMC_STATIC_BATCH})
    for (bool overlap : {false, true}) {
      llmc_engine_options chosen = options();
      chosen.overlap = overlap;
      chosen.policy = policy;
      chosen.kv_cache_tokens = 60;
      auto engine = Engine::load(gpu.path(), chosen);
      std::atomic<int> whole{0}, cancelled{0}, wrong{0};
      auto client = [&](uint32_t seed) {
        std::mt19937 rng(seed);
        for (int i = 0; i < 100; ++i) {
          int which = static_cast<int>(rng() % 16);
          if (rng() % 4 == 0)
            engine->submit(Tokens{which}, greedy(8), nullptr, nullptr);
          auto streams = start(*engine, {which, 5, 7}, 2 + which % 2, 10);
          if (rng() % 2 == 0)
            streams[rng() % streams.size()]->cancel(); // one ends all
          if (rng() % 8 == 0)
            continue; // vanishes
          Found found = read(streams);
          if (found.cancelled)
            ++cancelled;
          else
            ++whole;
          wrong += !found.cancelled &&
                   found.answers != right[static_cast<size_t>(which)].answers;
        }
      };
      std::vector<std::thread> threads;
      for (uint32_t i = 0; i < 3; ++i)
        threads.emplace_back(client, i);
      for (std::thread &thread : threads)
        thread.join();
      wait_until([&] {
        llmc_engine_stats stats = engine->stats();
        return stats.num_running + stats.num_waiting == 0;
      });
      CHECK_EQ(wrong, 0);
      CHECK(whole > 50 && cancelled > 20);
      CHECK_EQ(engine->stats().blocks_used, 0);
      CHECK_EQ(health(*engine), "");
    }
  check_nothing_leaked();
}

TEST(a_failed_step_ends_the_whole_search) {
  ToyEngine gpu(sampling);
  auto engine = Engine::load(gpu.path(), options());
  auto before = start(*engine, {1, 2, 3}, 3, 10);
  Found right = read(before);
  for (int after = 0; after < 12; ++after) {
    Failure failure("cuMemcpyHtoDAsync_v2", 1, after);
    auto streams = start(*engine, {1, 2, 3}, 3, 10);
    int failed = 0;
    for (auto &stream : streams)
      try {
        read_all(*stream);
      } catch (const Error &error) {
        failed += has(error.what(), "cannot upload step inputs");
      }
    CHECK(failed == 0 || failed == 3);
    CHECK(after > 9 || failed == 3);
    CHECK_EQ(engine->stats().blocks_used, 0);
    CHECK_EQ(engine->stats().num_running, 0);
  }
  auto again = start(*engine, {1, 2, 3}, 3, 10);
  CHECK(read(again).answers == right.answers);
}

// What can never run is said at once, and nothing of it stays behind.
TEST(searches_that_do_not_fit_are_refused) {
  ToyEngine gpu(sampling);
  llmc_engine_options chosen = options();
  chosen.kv_cache_tokens = 40;
  chosen.max_batch_size = 3;
  chosen.max_waiting = 1;
  auto engine = Engine::load(gpu.path(), chosen);
  CHECK(has(THROWN(Error, start(*engine, {1}, 4, 2)),
            "a beam_width of 4 needs as many sequences in a step, "
            "max_batch_size is 3"));
  CHECK(has(THROWN(Error, start(*engine, {1}, 3, 20)),
            "the beam search may need 15 KV blocks"));
  std::vector<Submission> three(3);
  three[0].params.beams.width = 2;
  CHECK(has(THROWN(Error, engine->submit(Tokens{1}, std::move(three))),
            "found 3 requests and a beam_width of 2"));
  CHECK(has(THROWN(Error, engine->submit(
                              Tokens{1},
                              [] {
                                SamplingParams params = greedy(2);
                                params.beams.width = 2;
                                return params;
                              }(),
                              nullptr, nullptr)),
            "found 1 requests and a beam_width of 2"));
}

TEST_MAIN()
