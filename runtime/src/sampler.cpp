#include "sampler.h"

#include "error.h"
#include "philox.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace llmc {

namespace {

// Range of g for u from 2^-33 to 1 - 2^-33, widened by a hair. A token further
// than that below the best score cannot win and needs no noise.
constexpr double kMinGumbel = -3.14; // -ln(-ln(2^-33)) = -3.131
constexpr double kMaxGumbel = 22.88; // -ln(2^-33) = 22.874

struct Maximum {
  int32_t id = -1;
  float value = -std::numeric_limits<float>::infinity();
  bool has_nan = false;
};

Maximum find_maximum(std::span<const float> x) {
  Maximum max;
  bool has_nan = false;
  for (size_t i = 0; i < x.size(); ++i) {
    has_nan |= std::isnan(x[i]);
    if (x[i] > max.value)
      max = {static_cast<int32_t>(i), x[i], false};
  }
  max.has_nan = has_nan;
  return max;
}

} // namespace

void gumbel4(uint64_t seed, uint32_t sample_index, uint32_t chunk,
             double out[4]) {
  auto words = philox4x32(
      {chunk, sample_index, 0, 0},
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  for (int i = 0; i < 4; ++i) {
    double u = (words[static_cast<size_t>(i)] + 0.5) * 0x1p-32;
    out[i] = -std::log(-std::log1p(-u));
  }
}

// Smallest x that steps 3 and 4 keep. Works on the largest values only,
// doubling until the mass suffices: a sort of the whole vocabulary would cost
// more than all of the rest.
double Sampler::top_k_top_p_threshold(std::span<const float> x, float max,
                                      const SamplingParams &params) {
  sorted_.assign(x.begin(), x.end());
  size_t kept = x.size();
  double threshold = -std::numeric_limits<double>::infinity();
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < x.size()) {
    auto kth = sorted_.begin() + (params.top_k - 1);
    std::nth_element(sorted_.begin(), kth, sorted_.end(), std::greater<>());
    threshold = *kth;
    kept = static_cast<size_t>(
        std::partition(sorted_.begin(), sorted_.end(),
                       [&](float v) { return v >= threshold; }) -
        sorted_.begin());
  }
  if (params.top_p >= 1)
    return threshold;
  double total = 0;
  for (size_t i = 0; i < kept; ++i)
    total += std::exp(double{sorted_[i]} - max);
  const double wanted = double{params.top_p} * total;
  double mass = 0;
  size_t done =
      0; // sorted_[0..done) is in descending order and counted in mass
  for (size_t width = std::min<size_t>(256, kept); done < kept;
       width = std::min(kept, width * 8)) {
    auto begin = sorted_.begin() + static_cast<ptrdiff_t>(done),
         end = sorted_.begin() + static_cast<ptrdiff_t>(width);
    std::partial_sort(begin, end,
                      sorted_.begin() + static_cast<ptrdiff_t>(kept),
                      std::greater<>());
    for (; done < width; ++done) {
      mass += std::exp(double{sorted_[done]} - max);
      if (mass >= wanted)
        return sorted_[done];
    }
  }
  return threshold; // rounding left the sum a hair below p
}

void Sampler::apply(const RowRules &rules) {
  for (const Adjustment &one : rules.adjustments) {
    float &logit = adjusted_[static_cast<size_t>(one.token)];
    logit = one.apply(logit);
  }
  if (rules.mask.empty())
    return;
  for (size_t i = 0; i < adjusted_.size(); ++i)
    if (!(rules.mask[i / 32] >> (i % 32) & 1))
      adjusted_[i] = -std::numeric_limits<float>::infinity();
}

int32_t Sampler::sample(std::span<const float> logits,
                        const SamplingParams &params, uint32_t sample_index,
                        const RowRules &rules, const History &history) {
  Maximum max = find_maximum(logits);
  if (max.has_nan || !std::isfinite(max.value))
    return kBadLogits;
  if (rules.num_words() > 0 || params.logits_processor) {
    adjusted_.assign(logits.begin(), logits.end());
    apply(rules);
    if (params.logits_processor) {
      if (int32_t code = params.logits_processor(
              params.callback_user, history.tokens.data(),
              history.tokens.size(), history.num_prompt_tokens,
              adjusted_.data(), adjusted_.size()))
        fail(LLMC_INVALID_ARGUMENT,
             "the request's logits_processor failed with code ", code);
    }
    logits = adjusted_;
    max = find_maximum(logits);
    if (max.has_nan || max.value == std::numeric_limits<float>::infinity())
      return kBadProcessor;
    if (max.id < 0)
      return kNothingAllowed;
  }
  return params.temperature > 0 ? draw(logits, max.id, params, sample_index)
                                : max.id;
}

int32_t Sampler::offer(std::span<const float> logits, const RowRules &rules,
                       int count, BeamOffer &out) {
  out.candidates.clear();
  Maximum max = find_maximum(logits);
  if (max.has_nan || !std::isfinite(max.value))
    return kBadLogits;
  const double normaliser = log_normaliser(logits);
  auto logprob = [&](size_t i) {
    return static_cast<float>(double{logits[i]} - normaliser);
  };
  adjusted_.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i)
    adjusted_[i] = logprob(i);
  apply(rules);
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0);
  auto score = [&](int32_t id) { return adjusted_[static_cast<size_t>(id)]; };
  auto end = order_.begin() + static_cast<ptrdiff_t>(std::min(
                                  static_cast<size_t>(count), order_.size()));
  std::partial_sort(order_.begin(), end, order_.end(),
                    [&](int32_t a, int32_t b) {
                      float x = score(a), y = score(b);
                      return x != y ? x > y : a < b;
                    });
  for (auto id = order_.begin(); id != end; ++id)
    if (score(*id) > -std::numeric_limits<float>::infinity())
      out.candidates.push_back(
          {*id, score(*id), logprob(static_cast<size_t>(*id))});
  return out.candidates.empty() ? kNothingAllowed : 0;
}

// Steps 2 to 6.
int32_t Sampler::draw(std::span<const float> logits, int32_t largest,
                      const SamplingParams &params, uint32_t sample_index) {
  const float inverse = 1.0f / params.temperature;
  scaled_.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i)
    scaled_[i] = logits[i] * inverse;
  // Scaling by a positive number keeps the order.
  const float max = scaled_[static_cast<size_t>(largest)];
  double threshold = -std::numeric_limits<double>::infinity();
  if (params.top_k > 0 || params.top_p < 1)
    threshold = top_k_top_p_threshold(scaled_, max, params);
  if (params.min_p > 0)
    threshold = std::max(threshold, max + std::log(double{params.min_p}));

  int32_t chosen = largest;
  double best = -std::numeric_limits<double>::infinity();
  double reachable = std::max(threshold, double{max} + kMinGumbel -
                                             kMaxGumbel); // below: cannot win
  for (size_t base = 0; base < logits.size(); base += 4) {
    size_t n = std::min<size_t>(4, logits.size() - base);
    bool any = false;
    for (size_t j = 0; j < n; ++j)
      any |= scaled_[base + j] >= reachable;
    if (!any)
      continue;
    double noise[4];
    gumbel4(params.seed, sample_index, static_cast<uint32_t>(base / 4), noise);
    for (size_t j = 0; j < n; ++j) {
      double score = scaled_[base + j] + noise[j];
      if (scaled_[base + j] < threshold || !(score > best))
        continue;
      best = score;
      chosen = static_cast<int32_t>(base + j);
      reachable = std::max(reachable, best - kMaxGumbel);
    }
  }
  return chosen;
}

} // namespace llmc
