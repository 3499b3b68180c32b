#include "sampling_params.h"

#include "error.h"

#include <algorithm>
#include <cmath>

namespace llmc {

namespace {

template <class T, class... Range>
void require(bool in_range, const char *name, T found,
             const Range &...expected) {
  if (!in_range)
    fail(LLMC_INVALID_ARGUMENT, name, " must be ", expected..., ", found ",
         found);
}

void check_ids(const char *name, std::span<const int32_t> ids, int vocab_size) {
  for (int32_t id : ids)
    if (id < 0 || id >= vocab_size)
      fail(LLMC_INVALID_ARGUMENT, name, ": ", id,
           " is outside the vocabulary of ", vocab_size);
}

// Written so that NaN fails every test.
void check_distribution(const SamplingParams &p) {
  require(p.temperature >= 0 && p.temperature <= 1e6f, "temperature",
          p.temperature, "0 (greedy) or a positive number");
  require(p.top_p > 0 && p.top_p <= 1, "top_p", p.top_p, "in (0, 1]");
  require(p.min_p >= 0 && p.min_p <= 1, "min_p", p.min_p, "in [0, 1]");
  require(p.top_k >= -1, "top_k", p.top_k, "positive, or 0 or -1 for all");
}

// Tokens are chosen by what all beams offer: what would choose among those of
// one, or needs them in one order, has no meaning.
void check_beams(const SamplingParams &p) {
  require(p.beams.width >= 1 && p.beams.width <= kMaxBeamWidth, "beam_width",
          p.beams.width, "in [1, ", kMaxBeamWidth, "]");
  require(std::isfinite(p.beams.length_penalty) &&
              std::abs(p.beams.length_penalty) <= 100,
          "length_penalty", p.beams.length_penalty, "in [-100, 100]");
  require(p.beams.early_stopping >= EarlyStopping::No &&
              p.beams.early_stopping <= EarlyStopping::Never,
          "early_stopping", static_cast<int>(p.beams.early_stopping),
          "0 (no), 1 (yes) or 2 (never)");
  if (p.beams.width == 1)
    return;
  auto refuse = [](bool given, const char *name, const char *instead) {
    if (given)
      fail(LLMC_INVALID_ARGUMENT, name,
           " and a beam_width above 1 exclude each other: ", instead);
  };
  refuse(p.temperature != 0 && p.temperature != 1, "temperature",
         "beam search draws nothing, leave it at 1 or 0");
  refuse(p.top_p != 1, "top_p", "beam search draws nothing, leave it at 1");
  refuse(p.top_k > 0, "top_k", "beam search draws nothing, leave it at 0");
  refuse(p.min_p != 0, "min_p", "beam search draws nothing, leave it at 0");
  refuse(p.prompt_logprobs >= 0, "prompt_logprobs",
         "ask for them in a request of its own");
  refuse(p.token_mask, "token_mask",
         "it is called for one answer that only grows");
  refuse(p.logits_processor, "logits_processor",
         "it is called for one answer that only grows");
}

void check_rules(const SamplingParams &p, int vocab_size) {
  require(p.repetition_penalty > 0 && p.repetition_penalty <= 1e6f,
          "repetition_penalty", p.repetition_penalty,
          "a positive number (1 is off)");
  require(p.presence_penalty >= -2 && p.presence_penalty <= 2,
          "presence_penalty", p.presence_penalty, "in [-2, 2]");
  require(p.frequency_penalty >= -2 && p.frequency_penalty <= 2,
          "frequency_penalty", p.frequency_penalty, "in [-2, 2]");
  require(p.min_tokens >= 0 && p.min_tokens <= p.max_tokens, "min_tokens",
          p.min_tokens, "in [0, max_tokens], which is [0, ", p.max_tokens, "]");
  require(p.no_repeat_ngram_size >= 0, "no_repeat_ngram_size",
          p.no_repeat_ngram_size, "positive, or 0 for off");
  std::vector<int32_t> biased;
  for (const LogitBias &one : p.logit_bias) {
    check_ids("logit_bias", {&one.token, 1}, vocab_size);
    require(one.bias >= -100 && one.bias <= 100, "logit_bias", one.bias,
            "in [-100, 100] for each token");
    biased.push_back(one.token);
  }
  std::sort(biased.begin(), biased.end());
  auto twice = std::adjacent_find(biased.begin(), biased.end());
  if (twice != biased.end())
    fail(LLMC_INVALID_ARGUMENT,
         "logit_bias must name each token once, found token ", *twice,
         " twice");
  for (const std::vector<int32_t> &word : p.bad_words) {
    require(!word.empty(), "bad_words", "an empty one",
            "words of at least one token");
    check_ids("bad_words", word, vocab_size);
  }
  check_ids("allowed_token_ids", p.allowed_token_ids, vocab_size);
}

} // namespace

bool needs_host(const SamplingParams &p) {
  return p.beams.width > 1 || p.logprobs >= 0 || p.prompt_logprobs >= 0 ||
         p.logits_processor || p.has_rules();
}

void check_and_normalise(SamplingParams &params, int vocab_size) {
  require(params.max_tokens >= 1, "max_tokens", params.max_tokens,
          "at least 1");
  check_distribution(params);
  check_beams(params);
  check_rules(params, vocab_size);
  check_ids("stop_token_ids", params.stop_token_ids, vocab_size);
  require(params.logprobs >= -1 && params.logprobs <= vocab_size, "logprobs",
          params.logprobs, "in [0, ", vocab_size, "], or -1 for none");
  require(params.prompt_logprobs >= -1 && params.prompt_logprobs <= vocab_size,
          "prompt_logprobs", params.prompt_logprobs, "in [0, ", vocab_size,
          "], or -1 for none");
  if (params.top_k == -1 || params.top_k >= vocab_size)
    params.top_k = 0;
  if (params.temperature > 0)
    params.temperature = std::max(params.temperature, kMinTemperature);
}

} // namespace llmc
