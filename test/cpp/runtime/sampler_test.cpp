// The sampler against its definition in sampler.h, written out naively.
#include "check.h"
#include "logprobs.h"
#include "philox.h"
#include "sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

using namespace llmc;

namespace {

SamplingParams sampled(float temperature, uint64_t seed = 0) {
  SamplingParams params;
  params.temperature = temperature;
  params.seed = seed;
  return params;
}

// Steps 2 to 5 of the definition.
std::vector<bool> kept_tokens(const std::vector<float> &logits,
                              const SamplingParams &params,
                              std::vector<float> &x) {
  size_t n = logits.size();
  x.resize(n);
  for (size_t i = 0; i < n; ++i)
    x[i] = logits[i] * (1.0f / params.temperature);
  std::vector<float> sorted = x;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  std::vector<bool> kept(n, true);
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < n)
    for (size_t i = 0; i < n; ++i)
      kept[i] = x[i] >= sorted[static_cast<size_t>(params.top_k - 1)];
  if (params.top_p < 1) {
    double total = 0;
    for (size_t i = 0; i < n; ++i)
      if (kept[i])
        total += std::exp(double{x[i]} - sorted[0]);
    float threshold = sorted[0];
    for (float v : sorted) { // descending
      double mass = 0;
      for (size_t i = 0; i < n; ++i)
        if (kept[i] && x[i] >= v)
          mass += std::exp(double{x[i]} - sorted[0]);
      threshold = v;
      if (mass >= double{params.top_p} * total)
        break;
    }
    for (size_t i = 0; i < n; ++i)
      kept[i] = kept[i] && x[i] >= threshold;
  }
  if (params.min_p > 0)
    for (size_t i = 0; i < n; ++i)
      kept[i] =
          kept[i] && double{x[i]} - sorted[0] >= std::log(double{params.min_p});
  return kept;
}

int32_t reference(const std::vector<float> &logits,
                  const SamplingParams &params, uint32_t sample_index) {
  std::vector<float> x;
  std::vector<bool> kept = kept_tokens(logits, params, x);
  int32_t best = -1;
  double best_score = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!kept[i])
      continue;
    auto words = philox4x32({static_cast<uint32_t>(i / 4), sample_index, 0, 0},
                            {static_cast<uint32_t>(params.seed),
                             static_cast<uint32_t>(params.seed >> 32)});
    double u = (words[i % 4] + 0.5) * std::pow(2.0, -32);
    double score = x[i] - std::log(-std::log1p(-u));
    if (best < 0 || score > best_score) {
      best = static_cast<int32_t>(i);
      best_score = score;
    }
  }
  return best;
}

// Pearson's statistic against its critical value at 1e-4 (Wilson-Hilferty): a
// right sampler fails one of ten thousand seeds, and the seeds here are fixed.
void check_distribution(const std::vector<float> &logits,
                        const SamplingParams &base, int draws) {
  std::vector<float> x;
  std::vector<bool> kept = kept_tokens(logits, base, x);
  double max = *std::max_element(x.begin(), x.end()), total = 0;
  for (size_t i = 0; i < x.size(); ++i)
    if (kept[i])
      total += std::exp(x[i] - max);
  std::vector<int> counts(x.size(), 0);
  Sampler sampler;
  for (int draw = 0; draw < draws; ++draw) {
    SamplingParams params = base;
    params.seed = base.seed + static_cast<uint64_t>(
                                  draw / 7); // both parts of the counter vary
    ++counts[static_cast<size_t>(
        sampler.sample(logits, params, static_cast<uint32_t>(draw % 7)))];
  }
  double statistic = 0;
  int cells = 0;
  double rest_expected = 0, rest_count = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double expected = kept[i] ? draws * std::exp(x[i] - max) / total : 0;
    if (!kept[i])
      CHECK_EQ(counts[i], 0);
    if (expected < 10) { // rare tokens share a cell
      rest_expected += expected;
      rest_count += counts[i];
      continue;
    }
    statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
    ++cells;
  }
  if (rest_expected > 10) {
    statistic += (rest_count - rest_expected) * (rest_count - rest_expected) /
                 rest_expected;
    ++cells;
  }
  double k = cells - 1,
         z = 3.719; // quantile 1 - 1e-4 of the normal distribution
  double critical =
      k * std::pow(1 - 2 / (9 * k) + z * std::sqrt(2 / (9 * k)), 3);
  CHECK(statistic < critical);
  if (statistic >= critical)
    std::printf("  chi-square %g with %g degrees of freedom, critical %g\n",
                statistic, k, critical);
}

std::vector<float> random_logits(size_t n, uint32_t seed, float spread,
                                 bool ties = false) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(n);
  for (float &l : logits) {
    l = normal(rng);
    if (ties)
      l = std::round(l * 2) / 2;
  }
  return logits;
}

} // namespace

// Vectors of the authors' Random123 library (kat_vectors, philox4x32 10).
TEST(philox_known_answers) {
  using Words = std::array<uint32_t, 4>;
  CHECK((philox4x32({0, 0, 0, 0}, {0, 0}) ==
         Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  uint32_t f = 0xffffffff;
  CHECK((philox4x32({f, f, f, f}, {f, f}) ==
         Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  CHECK((philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                    {0xa4093822, 0x299f31d0}) ==
         Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(greedy_takes_the_lowest_of_equals) {
  Sampler sampler;
  CHECK_EQ(sampler.sample(std::vector<float>{1, 3, 3, 2}, sampled(0), 0), 1);
  CHECK_EQ(sampler.sample(std::vector<float>{-5}, sampled(0), 0), 0);
}

TEST(agrees_with_the_definition_token_for_token) {
  Sampler sampler;
  std::mt19937 rng(1);
  int checked = 0;
  for (int i = 0; i < 4000; ++i) {
    size_t n = 1 + rng() % 200;
    std::vector<float> logits = random_logits(
        n, rng(), 0.2f + static_cast<float>(rng() % 50) / 10, i % 3 == 0);
    SamplingParams params = sampled(0.1f + static_cast<float>(rng() % 30) / 10,
                                    rng() * uint64_t{0x100000001});
    if (rng() % 2)
      params.top_k = static_cast<int>(1 + rng() % n);
    if (rng() % 2)
      params.top_p = static_cast<float>(1 + rng() % 99) / 100;
    if (rng() % 3 == 0)
      params.min_p = static_cast<float>(rng() % 100) / 100;
    uint32_t index = rng();
    checked += sampler.sample(logits, params, index) ==
               reference(logits, params, index);
  }
  CHECK_EQ(checked, 4000);
}

TEST(large_vocabulary_agrees_with_the_definition) {
  Sampler sampler;
  std::vector<float> logits =
      random_logits(30000, 5, 0.5f); // flat: top_p keeps thousands of tokens
  for (int i = 0; i < 5; ++i) {
    SamplingParams params = sampled(1, static_cast<uint64_t>(i));
    CHECK_EQ(sampler.sample(logits, params, 3), reference(logits, params, 3));
    params.top_k = 5000;
    CHECK_EQ(sampler.sample(logits, params, 3), reference(logits, params, 3));
  }
  SamplingParams params = sampled(1, 9);
  params.top_k = 700; // the reference's top_p is quadratic
  params.top_p = 0.9f;
  CHECK_EQ(
      sampler.sample(std::vector<float>(logits.begin(), logits.begin() + 3000),
                     params, 0),
      reference(std::vector<float>(logits.begin(), logits.begin() + 3000),
                params, 0));
}

TEST(distribution_of_plain_temperature) {
  check_distribution(random_logits(50, 2, 1.5f), sampled(1.0f, 1), 200000);
  check_distribution(random_logits(50, 3, 1.5f), sampled(0.6f, 100000), 200000);
  check_distribution(std::vector<float>(64, 0.0f), sampled(1.0f, 200000),
                     200000);
}
TEST(distribution_of_top_k) {
  SamplingParams params = sampled(1.2f, 300000);
  params.top_k = 10;
  check_distribution(random_logits(80, 4, 1), params, 100000);
}
TEST(distribution_of_top_p) {
  SamplingParams params = sampled(1.0f, 400000);
  params.top_p = 0.7f;
  check_distribution(random_logits(80, 5, 1), params, 100000);
}
TEST(distribution_of_min_p_and_top_k_and_top_p) {
  SamplingParams params = sampled(1.5f, 500000);
  params.top_k = 40;
  params.top_p = 0.95f;
  params.min_p = 0.1f;
  check_distribution(random_logits(80, 6, 1), params, 100000);
}

TEST(top_k_keeps_ties_with_the_kth) {
  SamplingParams params = sampled(1);
  params.top_k = 2;
  std::map<int32_t, int> seen;
  Sampler sampler;
  for (uint32_t i = 0; i < 2000; ++i)
    ++seen[sampler.sample(std::vector<float>{0, 2, 1, 1, 1, 0}, params, i)];
  CHECK_EQ(seen.size(), 4);
  CHECK(!seen.contains(0) && !seen.contains(5));
}

TEST(top_p_always_keeps_the_largest) {
  SamplingParams params = sampled(1);
  params.top_p = 1e-6f;
  Sampler sampler;
  for (uint32_t i = 0; i < 100; ++i)
    CHECK_EQ(sampler.sample(std::vector<float>{0, 0.5f, 0.1f}, params, i), 1);
}

TEST(noise_depends_on_seed_index_and_token_only) {
  double a[4], b[4];
  gumbel4(7, 3, 10, a);
  gumbel4(7, 3, 10, b);
  CHECK(std::equal(a, a + 4, b));
  gumbel4(uint64_t{7} << 32, 3, 10, b);
  CHECK(!std::equal(a, a + 4, b));
  gumbel4(7, 4, 10, b);
  CHECK(!std::equal(a, a + 4, b));
}

TEST(minus_infinity_is_never_chosen) {
  const float inf = std::numeric_limits<float>::infinity();
  Sampler sampler;
  for (uint32_t i = 0; i < 500; ++i)
    CHECK(sampler.sample(std::vector<float>{-inf, 0, -inf, 1, -inf}, sampled(5),
                         i) %
              2 ==
          1);
}

TEST(rows_without_numbers_give_no_token) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  Sampler sampler;
  for (float temperature : {0.0f, 1.0f}) {
    CHECK_EQ(
        sampler.sample(std::vector<float>{0, nan, 1}, sampled(temperature), 0),
        -1);
    CHECK_EQ(
        sampler.sample(std::vector<float>{0, inf, 1}, sampled(temperature), 0),
        -1);
    CHECK_EQ(
        sampler.sample(std::vector<float>{-inf, -inf}, sampled(temperature), 0),
        -1);
  }
}

TEST(logprobs_are_of_the_raw_model) {
  std::vector<float> logits = {1, 2, 3, 2};
  double normaliser =
      std::log(std::exp(1.0) + 2 * std::exp(2.0) + std::exp(3.0));
  TokenLogprobs found = logprobs_of(logits, 0, 3);
  CHECK_NEAR(found.logprob, 1 - normaliser, 1e-6);
  CHECK_EQ(found.top.size(), 3);
  const int32_t order[] = {2, 1, 3}; // the lower id first
  for (size_t i = 0; i < 3; ++i) {
    CHECK_EQ(found.top[i].id, order[i]);
    CHECK_NEAR(found.top[i].logprob,
               logits[static_cast<size_t>(order[i])] - normaliser, 1e-6);
  }
  CHECK_EQ(logprobs_of(logits, 1, 0).top.size(), 0);
  CHECK_EQ(logprobs_of(logits, 1, 99).top.size(), 4);
  CHECK(std::isnan(
      logprobs_of(std::vector<float>{0, std::nanf("")}, 0, 1).logprob));
}

TEST_MAIN()
