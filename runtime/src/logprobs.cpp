#include "logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace llmc {

double log_normaliser(std::span<const float> logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float l : logits)
    sum += std::exp(l - max);
  return max + std::log(sum);
}

TokenLogprobs logprobs_of(std::span<const float> logits, int32_t id,
                          int num_top) {
  const double normaliser = log_normaliser(logits);
  if (!std::isfinite(normaliser))
    return {std::numeric_limits<float>::quiet_NaN(), {}};
  auto logprob = [&](int32_t token) {
    return static_cast<float>(double{logits[static_cast<size_t>(token)]} -
                              normaliser);
  };

  TokenLogprobs result{logprob(id), {}};
  if (num_top == 0)
    return result;
  const size_t count = std::min(static_cast<size_t>(num_top), logits.size());
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::partial_sort(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(count),
                    ids.end(), [&](int32_t a, int32_t b) {
                      float x = logits[static_cast<size_t>(a)],
                            y = logits[static_cast<size_t>(b)];
                      return x != y ? x > y : a < b;
                    });
  for (size_t i = 0; i < count; ++i)
    result.top.push_back({ids[i], logprob(ids[i])});
  return result;
}

} // namespace llmc
