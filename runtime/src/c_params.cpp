#include "c_params.h"

#include "block_pool.h"
#include "error.h"

#include <cstddef>
#include <cstring>
#include <random>

namespace llmc {

namespace {

// The first version of the struct ended before this field.
constexpr size_t kFirstSize =
    offsetof(llmc_sampling_params, retention_priority);

template <class T>
std::span<const T> array(const T *data, size_t size, const char *name) {
  if (size > 0 && !data)
    fail(LLMC_INVALID_ARGUMENT, name, " is NULL, but its length is ", size);
  return {data, size};
}

std::vector<int32_t> ids(const int32_t *data, size_t size, const char *name) {
  std::span<const int32_t> all = array(data, size, name);
  return {all.begin(), all.end()};
}

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

} // namespace

llmc_sampling_params default_params() {
  llmc_sampling_params params{};
  params.struct_size = sizeof(params);
  params.max_tokens = 16;
  params.temperature = 1.0f;
  params.top_p = 1.0f;
  params.logprobs = -1;
  params.prompt_logprobs = -1;
  params.repetition_penalty = 1.0f;
  params.retention_priority = kDefaultRetention;
  params.beam_width = 1;
  params.length_penalty = 1.0f;
  return params;
}

llmc_sampling_params known_params(const llmc_sampling_params *params) {
  llmc_sampling_params known = default_params();
  if (!params)
    return known;
  const size_t size = params->struct_size;
  if (size < kFirstSize || size > sizeof(known))
    fail(LLMC_INVALID_ARGUMENT, "struct_size of the sampling parameters is ",
         size, ", this library knows ", kFirstSize, " to ", sizeof(known),
         ": start from llmc_sampling_params_default(), and use a library that "
         "is not older than the header");
  std::memcpy(&known, params, size);
  return known;
}

SamplingParams sampling_params(const llmc_sampling_params &params) {
  SamplingParams result;
  result.max_tokens = params.max_tokens;
  result.min_tokens = params.min_tokens;
  result.temperature = params.temperature;
  result.top_p = params.top_p;
  result.min_p = params.min_p;
  result.top_k = params.top_k;
  result.seed = params.has_seed ? params.seed : random_seed();
  result.ignore_eos = params.ignore_eos != 0;
  result.logprobs = params.logprobs;
  result.prompt_logprobs = params.prompt_logprobs;
  result.beams = {params.beam_width == 0 ? 1 : params.beam_width,
                  params.length_penalty,
                  static_cast<EarlyStopping>(params.early_stopping)};
  result.repetition_penalty = params.repetition_penalty;
  result.presence_penalty = params.presence_penalty;
  result.frequency_penalty = params.frequency_penalty;
  result.no_repeat_ngram_size = params.no_repeat_ngram_size;
  result.token_mask = params.token_mask;
  result.logits_processor = params.logits_processor;
  result.callback_user = params.callback_user;
  result.stop_token_ids =
      ids(params.stop_token_ids, params.num_stop_token_ids, "stop_token_ids");
  result.allowed_token_ids =
      ids(params.allowed_token_ids, params.num_allowed_token_ids,
          "allowed_token_ids");
  auto biased =
      array(params.logit_bias_ids, params.num_logit_bias, "logit_bias_ids");
  auto biases = array(params.logit_bias, params.num_logit_bias, "logit_bias");
  for (size_t i = 0; i < biased.size(); ++i)
    result.logit_bias.push_back({biased[i], biases[i]});
  const int32_t *token = params.bad_words;
  for (size_t length : array(params.bad_word_lengths, params.num_bad_words,
                             "bad_word_lengths")) {
    result.bad_words.push_back(ids(token, length, "bad_words"));
    token += length;
  }
  return result;
}

ServingParams serving_params(const llmc_sampling_params &params) {
  return {params.priority, params.timeout_seconds, params.cache_salt,
          params.retention_priority};
}

} // namespace llmc
