#pragma once
// Logarithms of probabilities under the raw model: ln softmax(l), before rules,
// temperature and cuts.

#include "llmc/llmc.h"

#include <cstdint>
#include <span>
#include <vector>

namespace llmc {

struct TokenLogprobs {
  float logprob = 0;
  std::vector<llmc_logprob> top; // descending, the lower id first among equals
};

// ln of the sum of exp(l), in float64; not finite for a row that is not
// numbers.
double log_normaliser(std::span<const float> logits);

// Of token `id`, and of the `num_top` likeliest. Evaluated in float64; NaN and
// nothing else for a row that is not numbers.
TokenLogprobs logprobs_of(std::span<const float> logits, int32_t id,
                          int num_top);

// A token as a caller receives it.
struct OutputToken {
  int32_t id = -1;
  TokenLogprobs logprobs; // zero and empty unless asked for

  // Valid while this is.
  llmc_token view() const {
    return {id, logprobs.logprob, logprobs.top.data(), logprobs.top.size()};
  }
};

} // namespace llmc
