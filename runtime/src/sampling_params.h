#pragma once

#include <cstdint>
#include <vector>

namespace llmc {

struct SamplingParams {
  int max_tokens = 16;
  float temperature = 1.0f; // 0: greedy
  float top_p = 1.0f;       // (0, 1]
  float min_p = 0.0f;       // [0, 1]
  int top_k = 0;            // 0: off
  uint64_t seed = 0;
  bool ignore_eos = false;
  bool logprobs = false;
  std::vector<int32_t> stop_token_ids;
};

// Whether the host has work between two steps of such a request: the step after
// is not started before the tokens of this one are known.
inline bool needs_host(const SamplingParams &params) { return params.logprobs; }

// How a request is served, beside what is sampled.
struct ServingParams {
  int priority = 0;           // -100 .. 100, lower goes first
  double timeout_seconds = 0; // 0: no deadline
  uint64_t cache_salt = 0;    // requests of one salt share KV blocks
};

// Temperatures between 0 and this are raised to it: below, dividing the logits
// overflows and the result is greedy anyway.
inline constexpr float kMinTemperature = 0.01f;

// Throws LLMC_INVALID_ARGUMENT naming the parameter, its range and the value.
// Normalises (top_k -1, tiny temperatures).
void check_and_normalise(SamplingParams &params, int vocab_size);

} // namespace llmc
