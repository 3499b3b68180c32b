#pragma once
// How a request's tokens are chosen. Meanings: sampler.h; names and defaults:
// llmc/sampling.h.

#include "beam_search.h"
#include "block_pool.h"
#include "llmc/sampling.h"

#include <cstdint>
#include <span>
#include <vector>

namespace llmc {

struct LogitBias {
  int32_t token;
  float bias;
};

struct SamplingParams {
  int max_tokens = 16;
  float temperature = 1.0f; // 0: greedy
  float top_p = 1.0f;       // (0, 1]
  float min_p = 0.0f;       // [0, 1]
  int top_k = 0;            // 0: off
  uint64_t seed = 0;
  bool ignore_eos = false;
  int logprobs = -1;        // how many of the largest; -1: none at all
  int prompt_logprobs = -1; // likewise for the tokens of the prompt
  BeamOptions beams;        // of a width above 1: beam search, nothing is drawn
  std::vector<int32_t> stop_token_ids;

  // Rules on logits, see logit_rules.h.
  float repetition_penalty = 1.0f; // > 0; 1: off
  float presence_penalty = 0.0f;   // [-2, 2]
  float frequency_penalty = 0.0f;  // [-2, 2]
  int min_tokens = 0;              // [0, max_tokens]
  int no_repeat_ngram_size = 0;    // 0: off
  std::vector<LogitBias> logit_bias;
  std::vector<std::vector<int32_t>> bad_words;
  std::vector<int32_t> allowed_token_ids; // empty: all
  llmc_token_mask token_mask = nullptr;
  llmc_logits_processor logits_processor = nullptr;
  void *callback_user = nullptr; // of the two

  // Whether a rule of logit_rules.h is in force.
  bool has_rules() const {
    return repetition_penalty != 1 || presence_penalty != 0 ||
           frequency_penalty != 0 || min_tokens > 0 ||
           no_repeat_ngram_size > 0 || !logit_bias.empty() ||
           !bad_words.empty() || !allowed_token_ids.empty() || token_mask;
  }
};

// Whether the host has work between two steps of such a request: the step after
// is not started before the tokens of this one are known.
bool needs_host(const SamplingParams &params);

// How a request is served, beside what is sampled.
struct ServingParams {
  int priority = 0;           // -100 .. 100, lower goes first
  double timeout_seconds = 0; // 0: no deadline
  uint64_t cache_salt = 0;    // requests of one salt share KV blocks
  int retention_priority = kDefaultRetention; // 0 .. kMaxRetention
};

// Temperatures between 0 and this are raised to it: below, dividing the logits
// overflows and the result is greedy anyway.
inline constexpr float kMinTemperature = 0.01f;

// Throws LLMC_INVALID_ARGUMENT naming the parameter, its range and the value.
// Normalises (top_k -1, tiny temperatures).
void check_and_normalise(SamplingParams &params, int vocab_size);

} // namespace llmc
